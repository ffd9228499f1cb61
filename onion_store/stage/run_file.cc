#include "onion_store/stage/run_file.h"

#include <algorithm>

#include "base/status_macros.h"
#include "onion_store/disk/nameless_file.h"

namespace h5mirror::store {
namespace {
constexpr size_t kBlockEntries = 170;  // about one page of the disk
constexpr size_t kBlockBytes = kBlockEntries * sizeof(StagedEntry);
static_assert(sizeof(StagedEntry) == 24);
}  // namespace

absl::StatusOr<std::shared_ptr<const RunFile>> RunFile::Write(EnvTree& tree,
                                                              std::string_view directory,
                                                              const Source& next) {
  auto run = std::make_shared<RunFile>();
  H5M_ASSIGN_OR_RETURN(run->file_, OpenNameless(tree, directory));
  std::vector<StagedEntry> block;
  bool more = true;
  while (more) {
    H5M_ASSIGN_OR_RETURN(std::optional<StagedEntry> entry, next());
    more = entry.has_value();
    if (more) block.push_back(*entry);
    if (block.empty() || (more && block.size() < kBlockEntries)) continue;
    std::string_view bytes(reinterpret_cast<const char*>(block.data()),
                           block.size() * sizeof(StagedEntry));
    H5M_RETURN_IF_ERROR(WriteAt(*run->file_, run->fences_.size() * kBlockBytes, bytes));
    run->fences_.push_back(block.front().offset);
    run->entry_count_ += block.size();
    block.clear();
  }
  return run;
}

absl::StatusOr<std::vector<StagedEntry>> RunFile::ReadBlock(size_t block) const {
  size_t count = std::min<uint64_t>(kBlockEntries, entry_count_ - block * kBlockEntries);
  std::vector<StagedEntry> entries(count);
  absl::Span<char> bytes(reinterpret_cast<char*>(entries.data()), count * sizeof(StagedEntry));
  H5M_ASSIGN_OR_RETURN(size_t got, file_->ReadAt(block * kBlockBytes, bytes));
  if (got != bytes.size()) return absl::InternalError("a run of staged entries became shorter");
  return entries;
}

size_t RunFile::BlockOf(uint64_t offset) const {
  auto after = std::upper_bound(fences_.begin(), fences_.end(), offset);
  return after == fences_.begin() ? 0 : after - fences_.begin() - 1;
}

absl::StatusOr<std::vector<StagedEntry>> RunFile::Find(Extent range) const {
  std::vector<StagedEntry> found;
  for (size_t block = BlockOf(range.offset); block < fences_.size(); ++block) {
    if (fences_[block] >= range.end()) break;
    H5M_ASSIGN_OR_RETURN(std::vector<StagedEntry> entries, ReadBlock(block));
    for (const StagedEntry& entry : entries) {
      if (entry.end > range.offset && entry.offset < range.end()) found.push_back(entry);
    }
  }
  return found;
}

absl::StatusOr<std::optional<StagedEntry>> RunFile::NextAfter(uint64_t offset) const {
  for (size_t block = BlockOf(offset); block < fences_.size(); ++block) {
    H5M_ASSIGN_OR_RETURN(std::vector<StagedEntry> entries, ReadBlock(block));
    auto found = std::find_if(entries.begin(), entries.end(),
                              [&](const StagedEntry& entry) { return entry.end > offset; });
    if (found != entries.end()) return *found;
  }
  return std::nullopt;
}

}  // namespace h5mirror::store
