#include "swmr_agent/cut_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/cut_map_format.h"

namespace h5mirror::agent {
namespace {

static_assert(rpc::kMapBlockBytes == kBlockBytes && rpc::kMapPageBytes == kPageBytes);

// The pages that are known, next to each other where they are.
void AddPieces(const CutMemory::Block& block, std::vector<std::string_view>& pieces) {
  const std::string_view bytes = *block.known.bytes;
  for (uint32_t page = 0; page * kPageBytes < bytes.size(); ++page) {
    if ((block.known.pages >> page & 1) == 0) continue;
    const std::string_view piece = bytes.substr(page * kPageBytes, kPageBytes);
    const bool follows =
        !pieces.empty() && pieces.back().data() + pieces.back().size() == piece.data();
    if (follows) {
      pieces.back() = {pieces.back().data(), pieces.back().size() + piece.size()};
    } else {
      pieces.push_back(piece);
    }
  }
}

uint64_t TotalBytes(absl::Span<const std::string_view> pieces) {
  uint64_t total = 0;
  for (const std::string_view piece : pieces) total += piece.size();
  return total;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SealedMemory>> SealedMemory::Make(
    std::shared_ptr<BlockPool> pool, absl::Span<const std::string_view> pieces) {
  const uint64_t size_bytes = TotalBytes(pieces);
  if (!pool->TryReserve(size_bytes)) {
    return absl::ResourceExhaustedError(
        StrCat("readers have half of the cache mapped: no room for ", size_bytes, " bytes more"));
  }
  std::shared_ptr<SealedMemory> memory(new SealedMemory(std::move(pool), size_bytes));
  H5M_RETURN_IF_ERROR(memory->Fill(pieces));
  return memory;
}

SealedMemory::~SealedMemory() {
  if (fd_ >= 0) close(fd_);
  pool_->Unreserve(size_bytes_);
}

// By write(): where the host has no memory left that is an error, and no signal.
absl::Status SealedMemory::Fill(absl::Span<const std::string_view> pieces) {
  fd_ = memfd_create("h5mirror-cut", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0) return ErrnoToStatus(errno, "make memory for readers");
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const ssize_t done = write(fd_, piece.data(), piece.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return ErrnoToStatus(errno, "fill memory for readers");
      piece.remove_prefix(static_cast<size_t>(done));
    }
  }
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return ErrnoToStatus(errno, "seal memory for readers");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const CutMemory>> CutMemory::Make(std::shared_ptr<BlockPool> pool,
                                                                 uint64_t size_bytes,
                                                                 const std::vector<Block>& blocks,
                                                                 bool has_all,
                                                                 const CutMemory* before) {
  std::shared_ptr<CutMemory> memory(new CutMemory);
  memory->has_all_ = has_all;
  memory->TakeOver(blocks, before);
  std::vector<Block> missing;
  for (const Block& block : blocks) {
    memory->page_count_ += std::popcount(block.known.pages);
    if (!memory->places_.contains(block.index)) missing.push_back(block);
  }
  H5M_RETURN_IF_ERROR(memory->AddPart(pool, size_bytes, missing));
  H5M_RETURN_IF_ERROR(memory->MakeIndex(std::move(pool), size_bytes));
  return memory;
}

std::vector<int> CutMemory::descriptors() const {
  std::vector<int> fds = {index_->fd()};
  for (const auto& part : parts_) fds.push_back(part->fd());
  return fds;
}

const CutMemory::Place* CutMemory::Find(const Block& block) const {
  const auto found = places_.find(block.index);
  if (found == places_.end() || found->second.pages != block.known.pages) return nullptr;
  // By owner: bytes that are gone are never taken for others at the same address.
  const auto& bytes = found->second.bytes;
  const bool is_same =
      !bytes.owner_before(block.known.bytes) && !block.known.bytes.owner_before(bytes);
  return is_same ? &found->second : nullptr;
}

void CutMemory::TakeOver(const std::vector<Block>& blocks, const CutMemory* before) {
  if (before == nullptr || before->parts_.size() >= rpc::kMapPartsMax) return;
  uint64_t wanted = 0, all = 0;
  for (const auto& part : before->parts_) all += part->size_bytes();
  for (const Block& block : blocks) {
    const Place* const place = before->Find(block);
    if (place == nullptr) continue;
    wanted += std::popcount(place->pages) * kPageBytes;
    places_.emplace(block.index, *place);
  }
  if (wanted >= all / 2) {
    parts_ = before->parts_;
  } else {
    places_.clear();
  }
}

absl::Status CutMemory::AddPart(std::shared_ptr<BlockPool> pool, uint64_t size_bytes,
                                const std::vector<Block>& blocks) {
  if (blocks.empty()) return absl::OkStatus();
  std::vector<std::string_view> pieces;
  uint64_t offset = 0;
  for (const Block& block : blocks) {
    places_[block.index] = {block.known.bytes, block.known.pages,
                            static_cast<uint16_t>(parts_.size()), offset};
    for (uint32_t page = 0; page < kBlockBytes / kPageBytes; ++page) {
      const uint64_t at = block.index * kBlockBytes + page * kPageBytes;
      if ((block.known.pages >> page & 1) == 0 || at >= size_bytes) continue;
      offset += std::min(kPageBytes, size_bytes - at);
    }
    AddPieces(block, pieces);
  }
  H5M_ASSIGN_OR_RETURN(auto part, SealedMemory::Make(std::move(pool), pieces));
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status CutMemory::MakeIndex(std::shared_ptr<BlockPool> pool, uint64_t size_bytes) {
  rpc::CutMapHeader header{};
  std::memcpy(header.magic, rpc::kMapMagic, sizeof(header.magic));
  header.size_bytes = size_bytes;
  header.entry_count = static_cast<uint32_t>(places_.size());
  header.part_count = static_cast<uint32_t>(parts_.size());
  header.has_all = has_all_ ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  for (const auto& [index, place] : places_) {
    const rpc::CutMapEntry entry{index, place.offset, static_cast<uint16_t>(place.pages),
                                 place.part, 0};
    bytes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  const std::string_view piece = bytes;
  H5M_ASSIGN_OR_RETURN(index_, SealedMemory::Make(std::move(pool), {&piece, 1}));
  return absl::OkStatus();
}

}  // namespace h5mirror::agent
