#include "client_vfd/plugin/open/swmr_file.h"

#include <errno.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/superblock_image.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/open/refused_opens.h"
#include "client_vfd/plugin/writes/superblock.h"

namespace h5mirror::vfd {
namespace {

// HDF5 writes the superblock of a file that it only opened for writing, as it was. Large writes are
// data: a comparison would cost a read of everything.
bool Changes(H5FD_t* under, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* bytes) {
  constexpr size_t kCompareBytesMax = 64 << 10;
  if (size > kCompareBytesMax || address + size > under->cls->get_eof(under, type)) return true;
  std::string old(size, '\0');
  return under->cls->read(under, type, dxpl, address, size, old.data()) < 0 ||
         std::memcmp(old.data(), bytes, size) != 0;
}

}  // namespace

herr_t BeforeFirstRead(OpenFile* file) {
  const std::unique_ptr<OpenFile::Unread> unread = std::exchange(file->unread, nullptr);
  // With server=embedded it was asked before the open.
  const int fd = IsEmbedded(*file) ? -1 : DescriptorOf(file->under);
  const SwmrLook look = LookForSwmrWriter(file->under, fd);
  if (look.writer == SwmrLook::Writer::kNone) return 0;
  if (look.writer != SwmrLook::Writer::kGone) {
    file->unread = std::make_unique<OpenFile::Unread>(*unread);
    RefusedOpensOfThread().OnRefusedRead(unread->name);
    PushOpenErrno(*file->host, unread->name, EAGAIN, WhyNotOpened(look, unread->name));
    return -1;
  }
  if (WriteFile(file, H5FD_MEM_SUPER, H5P_DEFAULT, look.offset, look.closed.size(),
                look.closed.data()) < 0) {
    return -1;
  }
  Say(unread->log, Audience::kUserToo, WhatWasMended(unread->name));
  return 0;
}

herr_t WriteFile(OpenFile* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                 const void* bytes) {
  if (file->left_out != nullptr && Changes(file->under, type, dxpl, address, size, bytes)) {
    BeforeChange(file);
  }
  if (file->buffered != nullptr) return file->buffered->Write(type, dxpl, address, size, bytes);
  if (file->mirror != nullptr) return file->mirror->Write(type, dxpl, address, size, bytes);
  return file->under->cls->write(file->under, type, dxpl, address, size, bytes);
}

herr_t MarkForSwmr(OpenFile* file) {
  file->swmr.OnMarked();
  const std::optional<SuperblockAt> superblock = FindSuperblock(file->under);
  const std::optional<std::string> marked =
      superblock ? SwmrSuperblock(superblock->bytes) : std::nullopt;
  if (!marked) return 0;  // A new file's is written yet.
  return WriteFile(file, H5FD_MEM_SUPER, H5P_DEFAULT, superblock->offset, marked->size(),
                   marked->data());
}

herr_t WriteSuperblock(OpenFile* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                       const void* bytes) {
  const std::optional<std::string> marked =
      file->swmr.Marked({static_cast<const char*>(bytes), size});
  const void* const written = marked ? marked->data() : bytes;
  const herr_t result = WriteFile(file, type, dxpl, address, size, written);
  // H5Fstart_swmr_write, which gives its lock up by a callback, so that readers can come.
  if (result >= 0 && SwmrFlagOf(address, size, written) == SwmrFlag::kSet) {
    UnlockLocal(file->under);
  }
  return result;
}

}  // namespace h5mirror::vfd
