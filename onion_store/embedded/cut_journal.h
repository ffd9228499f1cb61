// Moves the head of a file without a history from cut to cut. It first writes the old and the new
// bytes of each changed page to X.h5.h5m/journal, and only then changes the head. The cost grows
// with the pages changed. On disk: docs/reference/format.md, "Edit journal"; steps:
// docs/design/034-edit-journal.md.
#ifndef H5MIRROR_ONION_STORE_EMBEDDED_CUT_JOURNAL_H_
#define H5MIRROR_ONION_STORE_EMBEDDED_CUT_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace h5mirror::store {

struct JournalPage {
  uint64_t offset = 0;
  std::string before;  // shorter than a page if the file ended there
  std::string after;
};

struct JournalCut {
  uint64_t inode = 0;  // of the head
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string comment;
  std::vector<JournalPage> pages;  // offsets rise; if the file grows, bytes in no page are zeros
};

// A committed cut survives the end of the process, or power loss too.
enum class JournalSync : uint8_t { kProcess, kDurable };
// kForward: by an open of the file. kForwardAsked, kBack: by a person's decision.
enum class JournalWay : uint8_t { kForward, kForwardAsked, kBack };

// The head's stat when the journal was written, and when this process began to move it. The two
// differ if a crash left the head between the two sides; other programs may have changed the head
// since.
struct MovedFrom {
  FileStat before;
  FileStat found;
};

// Called when the head has reached one of a cut's two sides, while the journal still exists. If the
// process is killed before the call returns, SettleJournal() calls it again.
using HeadMoved = std::function<void(const JournalCut&, const MovedFrom&)>;

// The writer's side. The caller has the file's lease as long as this lives, and the lock of the
// head. Thread-compatible.
class CutJournal {
 public:
  // `tree` is the head's directory and must outlive this; `name` is the head in it. `moved` may be
  // null.
  CutJournal(EnvTree& tree, std::string name, JournalSync sync, HeadMoved moved = nullptr);

  // Moves `head` from the cut's old side to its new one. After an error the head is as before, as
  // durable as `sync` says, or is_between().
  // Errors: kFailedPrecondition  the head has another size or inode, or has lost its name, or
  //                              is_between() already.
  //         kResourceExhausted   the cut is too large for a journal, which is held in memory.
  absl::Status Commit(EnvFile& head, const JournalCut& cut);
  // True: the head holds a part or all of a failed cut, and could not be brought back. The journal
  // stays, for SettleJournal().
  bool is_between() const { return left_ == Left::kBetween; }
  // Removes the journal if the head does not need it.
  absl::Status Close();

 private:
  // The cut of the journal on disk: none; one that the head holds whole; one that the head may hold
  // a part of.
  enum class Left : uint8_t { kNothing, kDone, kBetween };

  absl::Status CheckNamed(const JournalCut& cut);
  absl::Status Put(const JournalCut& cut, const FileStat& before);
  absl::Status Clear();
  absl::Status Retract(const absl::Status& why);
  absl::Status TakeBack(EnvFile& head, const JournalCut& cut, const FileStat& before,
                        const absl::Status& why);

  EnvTree& tree_;
  const std::string name_;
  const JournalSync sync_;
  const HeadMoved moved_;
  std::unique_ptr<EnvFile> file_;
  bool is_named_ = false;  // the journal's name is as durable as `sync` says
  Left left_ = Left::kNothing;
};

// The journal that a crash left. `cut.pages` is empty: there is no journal, or its cut was not
// committed.
struct JournalLeft {
  bool exists = false;
  bool is_committed = false;
  int64_t written_ns = 0;  // when, by the file system's clock
  FileStat before;         // of the head, at that time
  JournalCut cut;
};
// kFailedPrecondition: the journal cannot be trusted or understood; SetJournalAside() is the way
// out.
absl::StatusOr<JournalLeft> ReadJournal(EnvTree& tree, const std::string& name);

// Puts the head of `name` in order, forward to the committed cut or back to the one before it, and
// removes the journal. Does nothing if there is no journal. The caller has the lease; `moved` may
// be null. If another program has put the head back to the old side since, it stays there with any
// `way`, and `notice` says so.
// Errors: kUnavailable         other programs have the head open.
//         kFailedPrecondition  other programs have changed the head since, and it is on neither
//                              side; or, on the way forward, it is another file, maybe a copy; or,
//                              with kForward, it has pages of both sides in an order that no killed
//                              process leaves.
absl::Status SettleJournal(EnvTree& tree, const std::string& name, JournalWay way,
                           const HeadMoved& moved = nullptr, std::string* notice = nullptr);

// Gives up a cut that cannot be settled. The journal stays, for people, under this name in
// X.h5.h5m; the head stays as it is. The caller has the lease.
inline constexpr char kGivenUpJournal[] = "journal-given-up";
absl::Status SetJournalAside(EnvTree& tree, const std::string& name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_CUT_JOURNAL_H_
