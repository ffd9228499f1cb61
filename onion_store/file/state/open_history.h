// The history's directory as a writer finds and leaves it. It knows whether the directory was made,
// and whether names in it are not durable yet. It also has the mark of an open file: after a crash
// the mark tells a pass that the file was open.
//
//   Make() --> made -- NoteNewName() --> has new names -- TakeNewNames(), then a sync --> durable
//                |-- RemoveEmpty(): no cut ever became durable
#ifndef H5MIRROR_ONION_STORE_FILE_STATE_OPEN_HISTORY_H_
#define H5MIRROR_ONION_STORE_FILE_STATE_OPEN_HISTORY_H_

#include <utility>

#include "absl/status/status.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

// Not thread-safe: the file's state lock guards it. It does no sync.
class OpenHistory {
 public:
  // `files` must outlive this.
  OpenHistory(const HistoryFiles& files, StoreKind kind) : files_(files), kind_(kind) {}

  // Makes the missing directories, once.
  absl::Status Make();
  // The file was loaded: the directory is there.
  void Loaded() { is_made_ = true; }
  // `has_mark`: the mark was there at the load, so a store ended while the file was open.
  void FoundMark(bool has_mark) { has_mark_ = has_mark; }
  // Removes the directory of a file without a durable cut. A client's files in it stay.
  void RemoveEmpty();

  // A name in the directory is new. The directory's next sync makes it durable.
  void NoteNewName() { has_new_names_ = true; }
  // True: there are new names, and the caller must sync the directory.
  bool TakeNewNames() { return std::exchange(has_new_names_, false); }

  // Only a hint for the pass after a crash: without it the file is recovered at its first open.
  void SetMark();
  void ClearMark();

 private:
  const HistoryFiles& files_;
  const StoreKind kind_;
  bool is_made_ = false;
  bool has_new_names_ = false;
  bool has_mark_ = false;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_STATE_OPEN_HISTORY_H_
