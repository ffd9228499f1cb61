// The names of one file's parts on the disk (docs/reference/format.md), and its marks.
//
//   NAME           the head
//   NAME.h5m/      the history: index, stage-*, pages-*, sums-N, head-N, gen-N, metadata, owner-*
//   .h5mirror/open/ID, pruning/ID, ...   marks, in a store of a root; hints; their loss is no error
#ifndef H5MIRROR_ONION_STORE_SHARED_HISTORY_FILES_H_
#define H5MIRROR_ONION_STORE_SHARED_HISTORY_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "onion_store/shared/store_context.h"

namespace h5mirror::store {

// Constant, and so thread-safe, once Identify() was called. Holds a share of the store's context.
class HistoryFiles {
 public:
  HistoryFiles(std::shared_ptr<StoreContext> context, std::string name);
  // Called once by the open of a file, before another thread knows it.
  void Identify(const FileId& file_id, uint32_t page_size_bytes);

  const std::string& name() const { return name_; }
  const std::string& directory() const { return directory_; }  // the history's
  const FileId& file_id() const { return file_id_; }
  uint32_t page_size_bytes() const { return page_size_bytes_; }
  EnvTree& tree() const { return *context_->tree; }
  MemoryBudget& budget() const { return context_->budget; }
  ObjectCache& objects() const { return context_->objects; }

  uint64_t PageOf(uint64_t offset) const { return offset / page_size_bytes_; }
  uint64_t PagesIn(uint64_t size_bytes) const;

  // Names relative to the root.
  std::string HistoryName(std::string_view file) const;
  std::string GenerationName(int64_t number) const;
  std::string OldHeadName(int64_t number) const;
  std::string OpenMarkName() const;

  // Sets or removes the mark of this file in `directory` (kPruneMarks, kCheckMarks) of a root.
  // Other stores have none. Ignores errors.
  void SetMark(std::string_view directory) const;
  void RemoveMark(std::string_view directory) const;

  // Makes the history's directory and the directories above the head, if they are missing.
  absl::Status MakeDirectories() const;
  // Syncs the names of the directories above the head.
  absl::Status SyncNamesAbove() const;

 private:
  std::string MarkName(std::string_view directory) const;

  const std::shared_ptr<StoreContext> context_;
  const std::string name_;
  const std::string directory_;
  FileId file_id_{};
  uint32_t page_size_bytes_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_HISTORY_FILES_H_
