#include "client_vfd/plugin/modes/writable_mode.h"

#include <optional>
#include <string>

#include "base/superblock_image.h"
#include "client_vfd/plugin/writes/swmr_write_mode.h"

namespace h5mirror::vfd {

void WritableMode::AddLayer(std::unique_ptr<FileBytes> layer) {
  layers_.push_back(std::move(layer));
  top_ = layers_.back().get();
}

herr_t WritableMode::CloseLayers() {
  herr_t result = 0;
  while (!layers_.empty()) {
    const herr_t closed = layers_.back()->BeforeClose();
    layers_.pop_back();
    if (closed < 0) result = closed;
  }
  return result;
}

void WritableMode::DropLayers() {
  while (!layers_.empty()) layers_.pop_back();
}

herr_t WritableMode::Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) {
  if (first_read_.IsExpected() && BeforeFirstRead() < 0) return -1;
  return top_->Read(type, dxpl, addr, size, buffer);
}

herr_t WritableMode::Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void* buffer) {
  if (swmr_.IsToBeMarked() && MarkForSwmr() < 0) return -1;
  if (type != H5FD_MEM_DRAW && SwmrFlagOf(addr, size, buffer) != SwmrFlag::kNotASuperblock) {
    return WriteSuperblock(type, dxpl, addr, size, buffer);
  }
  return top_->Write(type, dxpl, addr, size, buffer);
}

herr_t WritableMode::Truncate(hid_t dxpl, hbool_t closing) {
  swmr_.OnTruncate(closing);
  return top_->Truncate(dxpl, closing);
}

herr_t WritableMode::MarkForSwmr() {
  swmr_.OnMarked();
  const std::optional<SuperblockAt> superblock = FindSuperblock(under());
  const std::optional<std::string> marked =
      superblock ? SwmrSuperblock(superblock->bytes) : std::nullopt;
  if (!marked) return 0;  // A new file's is written yet.
  return top_->Write(H5FD_MEM_SUPER, H5P_DEFAULT, superblock->offset, marked->size(),
                     marked->data());
}

herr_t WritableMode::WriteSuperblock(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                                     const void* buffer) {
  const std::optional<std::string> marked = swmr_.Marked({static_cast<const char*>(buffer), size});
  const void* const written = marked ? marked->data() : buffer;
  const herr_t result = top_->Write(type, dxpl, addr, size, written);
  // H5Fstart_swmr_write, which gives its lock up by a callback, so that readers can come.
  if (result >= 0 && SwmrFlagOf(addr, size, written) == SwmrFlag::kSet) under().Unlock();
  return result;
}

}  // namespace h5mirror::vfd
