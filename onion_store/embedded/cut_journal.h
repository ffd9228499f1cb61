// A cut of a file that keeps no history beside it, on its way to the head: X.h5.h5m/journal holds
// what the pages were and what they become, and only then the head is changed. So the head moves
// from cut to cut at a cost that follows the pages changed. On disk: docs/reference/format.md,
// "Edit journal"; steps: docs/design/034-edit-journal.md.
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
  std::string before;  // shorter than a page where the file ended, and zeros from there
  std::string after;
};

struct JournalCut {
  uint64_t inode = 0;  // of the head
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string comment;
  std::vector<JournalPage> pages;  // with rising offsets; what else becomes longer is zeros
};

// kDurable: a cut that was committed survives power loss, too, and not only the process.
enum class JournalSync : uint8_t { kProcess, kDurable };
// kForward: for whoever opens the file; kForwardAsked: by a person's decision.
enum class JournalWay : uint8_t { kForward, kForwardAsked, kBack };

// The head when the journal was written, and when who tells began to move it: a head that was left
// between the two sides, and maybe changed by others since, is not the former any more.
struct MovedFrom {
  FileStat before;
  FileStat found;
};

// Told when the head has come to one of a cut's two sides, while the journal is still there: a kill
// before it has returned has it called again, by who settles the journal.
using HeadMoved = std::function<void(const JournalCut&, const MovedFrom&)>;

// The writer's side. The caller has the file's lease for as long as it lives, and the lock of the
// head. Thread-compatible.
class CutJournal {
 public:
  // `tree` must outlive it, and is that of the head's directory; `name` is the head in it. `moved`
  // may be null.
  CutJournal(EnvTree& tree, std::string name, JournalSync sync, HeadMoved moved = nullptr);

  // Brings `head` from what the cut says it was to what it becomes; its pages have rising offsets.
  // After an error the head is as before, as durable as `sync` says, or is_between().
  // Errors: kFailedPrecondition  the head has another size or inode, or no more its name, or
  //                              is_between() already.
  //         kResourceExhausted   it is too large for a journal, which is held in memory.
  absl::Status Commit(EnvFile& head, const JournalCut& cut);
  // The head holds a part of a cut that failed, or all of it, and could not be brought back. The
  // journal stays, for SettleJournal().
  bool is_between() const { return left_ == Left::kBetween; }
  // Removes the journal, where the head needs none.
  absl::Status Close();

 private:
  // What the journal on disk may be: of no cut; of one that the head holds whole; of one that it
  // may hold a part of.
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
  bool is_named_ = false;  // for good, as far as `sync` says
  Left left_ = Left::kNothing;
};

// What a crash left in the journal of `name`; pages is empty where there is nothing to do: no
// journal, or one whose cut was not committed.
struct JournalLeft {
  bool exists = false;
  bool is_committed = false;
  int64_t written_ns = 0;  // when, as the file system says
  FileStat before;         // of the head, as of then
  JournalCut cut;
};
// Errors: kFailedPrecondition  it is none that may be trusted, or understood: SetJournalAside().
absl::StatusOr<JournalLeft> ReadJournal(EnvTree& tree, const std::string& name);

// Puts the head of `name` in order, forward to the committed cut or back to the one before it, and
// removes the journal. Does nothing where there is none. The caller has the lease; `moved` may be
// null. A head that was put back since to what it was before the cut stays so, whatever `way`, and
// `notice` says it.
// Errors: kUnavailable         others have the head open.
//         kFailedPrecondition  others have changed it since: it is neither cut's; or, on the way
//                              forward, it is another file, maybe a copy; or, with kForward, it has
//                              pages of both in an order that no process leaves that is killed.
absl::Status SettleJournal(EnvTree& tree, const std::string& name, JournalWay way,
                           const HeadMoved& moved = nullptr, std::string* notice = nullptr);

// Gives a cut up that cannot be settled: its journal stays, under this name in X.h5.h5m, for
// people, and the head as it is. The caller has the lease.
inline constexpr char kGivenUpJournal[] = "journal-given-up";
absl::Status SetJournalAside(EnvTree& tree, const std::string& name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_CUT_JOURNAL_H_
