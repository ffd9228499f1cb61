#include "rpc/cut_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

constexpr int kSealsWanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

absl::Status Refuse(std::string_view why) {
  return absl::InvalidArgumentError(StrCat("the agent's map of the cut: ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CutMap>> CutMap::Map(const std::vector<OwnedFd>& memories,
                                                    uint64_t size_bytes, OwnedFd connection) {
  std::unique_ptr<CutMap> map(new CutMap(size_bytes, std::move(connection)));
  H5M_RETURN_IF_ERROR(map->MapAll(memories));
  H5M_RETURN_IF_ERROR(map->CheckIndex());
  return map;
}

CutMap::~CutMap() {
  for (const Memory& memory : memories_) {
    munmap(const_cast<char*>(memory.data), memory.length);
  }
}

absl::Status CutMap::MapAll(const std::vector<OwnedFd>& memories) {
  if (memories.empty() || memories.size() > kMapDescriptorsMax) {
    return Refuse(StrCat("it has ", memories.size(), " descriptors"));
  }
  for (const OwnedFd& memory : memories) {
    const int seals = fcntl(memory.get(), F_GET_SEALS);
    if (seals < 0 || (seals & kSealsWanted) != kSealsWanted) return Refuse("it is not sealed");
    struct stat info {};
    if (fstat(memory.get(), &info) != 0 || info.st_size <= 0) return Refuse("a part is empty");
    const auto length = static_cast<uint64_t>(info.st_size);
    void* const data = mmap(nullptr, length, PROT_READ, MAP_SHARED, memory.get(), 0);
    if (data == MAP_FAILED) return ErrnoToStatus(errno, "map the agent's memory");
    memories_.push_back({static_cast<const char*>(data), length});
  }
  return absl::OkStatus();
}

// Once: what is sealed stays as it was found.
absl::Status CutMap::CheckIndex() {
  const Memory& index = memories_.front();
  CutMapHeader header;
  if (index.length < sizeof(header)) return Refuse("its index is cut off");
  std::memcpy(&header, index.data, sizeof(header));
  if (std::memcmp(header.magic, kMapMagic, sizeof(header.magic)) != 0) {
    return Refuse("its index is of another kind");
  }
  if (header.size_bytes != size_bytes_) {
    return Refuse(StrCat("it is of a cut of ", header.size_bytes, " bytes, not ", size_bytes_));
  }
  if (header.part_count != memories_.size() - 1 ||
      header.entry_count > (index.length - sizeof(header)) / sizeof(CutMapEntry)) {
    return Refuse("its index does not fit");
  }
  entries_ = {reinterpret_cast<const CutMapEntry*>(index.data + sizeof(header)),
              header.entry_count};
  has_all_ = header.has_all == 1;
  const CutMapEntry* before = nullptr;
  for (const CutMapEntry& entry : entries_) {
    const bool rises = before == nullptr || entry.block > before->block;
    before = &entry;
    if (!rises || entry.block >= (size_bytes_ + kMapBlockBytes - 1) / kMapBlockBytes ||
        entry.part >= header.part_count) {
      return Refuse("an entry of its index makes no sense");
    }
    uint64_t length = 0;
    for (uint32_t page = 0; page < kMapBlockBytes / kMapPageBytes; ++page) {
      if ((entry.known >> page & 1) != 0) length += PageBytes(entry.block, page);
    }
    const uint64_t room = memories_[1 + entry.part].length;
    if (entry.offset > room || length > room - entry.offset) {
      return Refuse("an entry of its index leads out of it");
    }
  }
  return absl::OkStatus();
}

// 0: beyond the end.
uint64_t CutMap::PageBytes(uint64_t block, uint32_t page) const {
  const uint64_t begin = block * kMapBlockBytes + page * kMapPageBytes;
  return begin >= size_bytes_ ? 0 : std::min(kMapPageBytes, size_bytes_ - begin);
}

const CutMapEntry* CutMap::EntryOf(uint64_t block) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), block,
      [](const CutMapEntry& entry, uint64_t wanted) { return entry.block < wanted; });
  return found == entries_.end() || found->block != block ? nullptr : &*found;
}

uint64_t CutMap::Read(uint64_t offset, absl::Span<char> out) const {
  const uint64_t wanted = out.size();
  while (!out.empty()) {
    const CutMapEntry* const entry = EntryOf(offset / kMapBlockBytes);
    if (entry == nullptr) break;
    const uint64_t within = offset % kMapBlockBytes;
    const auto page = static_cast<uint32_t>(within / kMapPageBytes);
    if ((entry->known >> page & 1) == 0) break;
    const auto before = static_cast<uint16_t>(entry->known & ((uint32_t{1} << page) - 1));
    const uint64_t skip = within % kMapPageBytes;
    const uint64_t bytes = PageBytes(entry->block, page);
    if (skip >= bytes) break;
    const uint64_t at = entry->offset + std::popcount(before) * kMapPageBytes + skip;
    const uint64_t part = std::min<uint64_t>(out.size(), bytes - skip);
    std::memcpy(out.data(), memories_[1 + entry->part].data + at, part);
    out.remove_prefix(part);
    offset += part;
  }
  return wanted - out.size();
}

}  // namespace h5mirror::rpc
