// Makes a copy of one file's heads and index in the archive, step by step:
// docs/design/050-archive.md, "Copies of files".
//
//   reads the last copy's list --> deletes parts of broken copies that it does not go on with
//         --> of each head: parts
//         --> copies the index --> parts --> list --> row --> deletes what no list names
//   or, where there are to be none:
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

  // Whether a copy of now would differ from the last one. `always`: also where it would not. The
  // caller has the work lock, and seals the newest segment next.
  absl::StatusOr<bool> Plan(bool always);
  // One step. False: it is done. After an error of the archive it may be repeated.
  // Errors: those of ArchiveJob::Step(); kDataLoss also where the head is damaged.
  absl::StatusOr<bool> Step();

  // Deletes all copies, then the row; in steps.
  void PlanToDelete() {
    forgets_ = true;
    phase_ = Phase::kDoom;
  }

  // True: the copy is whole, so that what it does not name may go.
  bool is_whole() const { return is_whole_; }
  VersionNumber version() const { return version_; }
  uint64_t put_bytes() const { return put_bytes_; }
  // Why there is no copy now, or which damaged bytes it lacks; empty: it is there and lacks
  // nothing, or an error was returned.
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
  // Deletes the parts of copies that were broken off, but for those of the newest, in steps.
  absl::Status SweepBroken();
  absl::Status ListBroken();
  // Looks for what the newest broken copy has that can be used.
  absl::Status FindBegun();
  // Whether the version of one of its heads is still there.
  absl::StatusOr<bool> IsOfUse(const std::optional<BegunCopy>& begun);
  // Begins a head with what a broken copy has of it. False: that has nothing of use.
  absl::StatusOr<bool> GoOn(const CopyHead& wanted);
  // All bytes of an earlier version of a head were put: what has changed since comes next.
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
  // Whether the head of the last copy does for this one, whose version of that generation is
  // `newest`.
  absl::StatusOr<bool> Stays(const CopyHead& last, const VersionInfo& newest);
  absl::Status LeaveFor(std::string_view why);
  // Decides which layers of the last copy stay, and what the new one is of.
  absl::StatusOr<std::unique_ptr<LayerBytes>> BytesOver(const CopyHead& last, CopyHead* head,
                                                        CopyLayer* layer);
  absl::Status Parts(CopyLayer* layer, Phase next);
  // Damaged pages were met. OK: the layer may lack them, as no copy has their bytes, or the head is
  // begun anew upon the last copy, which has. kDataLoss: neither can be.
  absl::Status MeetDamage(const CopyLayer& layer);
  // What the layers lost, and no later one has.
  uint64_t LostBytes();
  // Takes out of `lost` what has changed between both versions, if they are still there.
  void TakeOutChanges(VersionNumber from, VersionNumber to, ExtentSet* lost);
  absl::Status CopyIndex();
  absl::Status PutList();
  absl::Status CommitRow();
  absl::Status Doom();
  absl::Status Sweep(Phase next);
  absl::Status ForgetRow();
  // Puts an object, and compares it once it is there. kDataLoss: it is another one. Then it is
  // deleted, and the copy begins anew with the next step, as it does where the deletion fails.
  absl::Status PutChecked(const std::string& name, const std::string& bytes);
  absl::StatusOr<bool> IsThere(VersionNumber version, CutNumber cut, int64_t generation);
  // Whether a sweep leaves an object.
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
  // The generation whose last copy has bytes that are damaged by now; 0: none.
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
