// Makes a copy of one file's heads and index in the archive, step by step:
// docs/design/050-archive.md, "Copies of files".
//
//   reads the last copy's list --> deletes parts of broken-off copies that it does not use
//         --> of each head: parts
//         --> copies the index --> parts --> list --> row --> deletes objects that no list names
//   or, if there are to be no copies:
//   a row that names no copy --> deletes all copies --> no row
//
// Only steps of the row hold the file's work lock; none that calls the archive does.
#ifndef H5MIRROR_ONION_STORE_JOBS_COPY_JOB_H_
#define H5MIRROR_ONION_STORE_JOBS_COPY_JOB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/extent_set.h"
#include "onion_store/file.h"
#include "onion_store/index/version_index.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/layer_bytes.h"
#include "onion_store/object_store.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/pages/listed_copies.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

// Not thread-safe.
class CopyJob {
 public:
  // All must outlive this.
  CopyJob(ArchiveSource& file, VersionIndex& index, ObjectStore& store);

  // Whether to make a copy: the file differs from the last copy, or `always` is set. The caller has
  // the work lock, and seals the newest segment next.
  absl::StatusOr<bool> Plan(bool always);
  // One step. False: it is done. After an error of the archive it may be repeated.
  // Errors: those of ArchiveJob::Step(); kDataLoss also if the head is damaged.
  absl::StatusOr<bool> Step();

  // Deletes all copies, then the row; in steps.
  void PlanToDelete() {
    forgets_ = true;
    phase_ = Phase::kDoom;
  }

  // True: the copy is whole, so objects that it does not name may go.
  bool is_whole() const { return is_whole_; }
  VersionNumber version() const { return version_; }
  uint64_t put_bytes() const { return put_bytes_; }
  // Why there is no copy now, or which damaged bytes it lacks. Empty: the copy is complete, or an
  // error was returned.
  const std::string& left() const { return left_; }

 private:
  enum class Phase : uint8_t {
    kBegin,
    kSweepBroken,
    kHead,
    kHeadParts,
    kIndex,
    kIndexParts,
    kList,
    kRow,
    kDoom,
    kSweepLists,
    kSweepParts,
    kForgetRow,
    kDone
  };

  absl::Status Run();
  absl::Status Begin();
  // Deletes, in steps, the parts of broken-off copies, except those of the newest.
  absl::Status SweepBroken();
  absl::Status ListBroken();
  // Looks for usable parts of the newest broken-off copy.
  absl::Status FindBegun();
  // Whether the version of one of its heads still exists.
  absl::StatusOr<bool> IsOfUse(const std::optional<BegunCopy>& begun);
  // Begins a head with the parts that a broken-off copy has of it. False: no part is usable.
  absl::StatusOr<bool> GoOn(const CopyHead& wanted);
  // All bytes of an earlier version of a head were put: the changes since then come next.
  absl::Status GoOnFrom(const CopyHead& begun, CopyHead head);
  bool HasFurtherHeads() const {
    return !heads_.empty() && heads_.rbegin()->first > copy_.heads.back().generation;
  }
  // Tells a later job how far this one is.
  absl::Status NoteBegun();
  // The generations whose heads the copy needs, with the version of each.
  absl::Status PlanHeads();
  absl::Status BeginHead();
  // The head of the last copy; null: there is none.
  const CopyHead* LastHead(int64_t generation) const;
  // Whether this copy can use the head of the last copy. `newest`: this copy's version of that
  // generation.
  absl::StatusOr<bool> Stays(const CopyHead& last, const VersionInfo& newest);
  absl::Status LeaveFor(std::string_view why);
  // Decides which layers of the last copy stay, and what the new layer holds.
  absl::StatusOr<std::unique_ptr<LayerBytes>> BytesOver(const CopyHead& last, CopyHead* head,
                                                        CopyLayer* layer);
  absl::Status Parts(CopyLayer* layer, Phase next);
  // Handles damaged pages. OK: the layer may lack them because no copy has their bytes; or the head
  // begins again upon the last copy, which has them. kDataLoss: neither is possible.
  absl::Status MeetDamage(const CopyLayer& layer);
  // The bytes that layers lost and no later layer has.
  uint64_t LostBytes();
  // Removes from `lost` the bytes that changed between the two versions, if both still exist.
  void TakeOutChanges(VersionNumber from, VersionNumber to, ExtentSet* lost);
  absl::Status CopyIndex();
  absl::Status PutList();
  absl::Status CommitRow();
  absl::Status Doom();
  absl::Status Sweep(Phase next);
  absl::Status ForgetRow();
  // Puts an object, then reads it back and compares. kDataLoss: the two differ. Then the object is
  // deleted, and the next step begins the copy again, even if the deletion failed.
  absl::Status PutChecked(const std::string& name, const std::string& bytes);
  absl::StatusOr<bool> IsThere(VersionNumber version, CutNumber cut, int64_t generation);
  // Whether a sweep must leave an object.
  bool IsNeeded(const std::string& name) const;
  CopyLayer NewLayer() const;
  absl::Status OfDisk(absl::Status status);

  ArchiveSource& file_;
  const HistoryFiles& files_;
  VersionIndex& index_;
  ObjectStore& store_;
  Phase phase_ = Phase::kDone;
  VersionNumber version_ = 0;
  ArchivedCopyRow row_;  // of the last copy, then of this one
  std::string shows_;
  std::optional<FileCopy> last_;
  FileCopy copy_;
  std::map<int64_t, VersionNumber> heads_;  // to do, by generation
  // The generation with damaged bytes that its last copy still has; 0: none.
  int64_t damaged_ = 0;
  VersionNumber damaged_from_ = 0;  // of the layer that would have met them
  std::string damage_;              // what the first damaged page said
  // Of the layer that is made now.
  std::unique_ptr<LayerBytes> bytes_;
  bool has_more_ = false;
  std::string object_;  // to be put; empty: none
  uint64_t next_part_ = 0;
  std::string index_name_;  // the copy of the index on the disk
  // Of a sweep.
  bool forgets_ = false;  // all copies go
  bool is_listed_ = false;
  std::string list_next_;
  std::deque<std::string> doomed_;
  std::deque<std::string> broken_parts_;
  std::set<std::string> begun_names_;  // as they are listed
  std::optional<BegunCopy> begun_;     // of the newest broken copy
  bool has_looked_ = false;            // for it
  // Of this copy.
  std::string noted_;         // the newest object of NoteBegun(), or of the broken copy
  uint64_t note_count_ = 0;   // of this copy
  uint64_t noted_parts_ = 0;  // how many parts it names of the head that is made now
  ListedCopies listed_;
  uint64_t newest_listed_ = 0;   // the greatest number of a copy that has an object
  std::set<std::string> lists_;  // prefixes of copies that have a list
  bool is_whole_ = false;
  uint64_t put_bytes_ = 0;
  std::string left_;
  MemoryCharge charge_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_COPY_JOB_H_
