// The cut queue of one session: the bytes of the local file that the server lacks, cut by cut.
//
// A cut must reach the server as the file was when the cut was closed. The queue knows ranges, not
// bytes: the bytes stay in the local file until the sender reads them. Only bytes that a later
// write would destroy before they were read are copied out.
//
// THE WAY OF A RANGE
//
//   AddWrite()               program -> open_
//   Close()                  open_ -> closed_
//   Next()                   closed_, or a large open_ -> sending_
//   Next() gives a barrier   sending_ -> unacked_
//   ForgetDurable()          unacked_ -> gone
//   SendAgain()              all four -> open_: the stream is lost
//
//   open_      the cut that the program still writes
//   closed_    cuts that wait to be sent, oldest first: ranges to read, and copies (`saved`)
//   sending_   handed out since the last barrier; from the front of closed_, or, where that is
//              empty, from a large open_
//   unacked_   handed out with its barrier, and not durable on the server yet
//
// Of a closed cut Next() gives the truncate, the copies, the ranges to read, and then the barrier.
// The truncate is the smallest size that the file had meanwhile. It goes first, so that bytes which
// grew back unwritten read as zeros.
//
// COPIES
//
// Before the program changes a range, the owner does this:
//
//   1. wait while IsBeingRead(): the sender reads bytes of a closed cut there
//   2. read the parts that AtRisk() names from the file, and Save() them
//   3. let the program write, then AddWrite()
//
// Bytes of the open cut need no copy, even where they were handed out already: the write adds the
// range again, and it is sent again before the barrier.
//
// INVARIANTS
//
// - A byte is in the ranges to read of at most one closed cut, as 2 takes it out of them.
// - A byte that is not durable on the server is in one of the four places. So a stream may break at
//   any time: SendAgain() puts all of it into open_, to be read as the file is by then. Cuts not
//   sent, and copies, are dropped. The server shows nothing of it before the next barrier, so it
//   never shows a mixture.
// - A range may cover more than was written, which only sends more. So open_ closes its smallest
//   gaps beyond kExtentsMax ranges. A closed cut closes none: the gap would be read as it is now,
//   and may hold bytes of a later cut. A spool has nothing right between the ranges: kExact.
// - Memory is bounded, but for kExact. With 256 closed cuts a tick ends nothing. Beyond 64 entries
//   of unacked_ the two oldest become one. The owner bounds the copies: MergeTick() frees some, as
//   it gives up a tick, never a sync or a commit.
// - Barriers are numbered 1, 2, 3, ... in the order of Next(), for the whole session: `seq`.
//
// Pure: no I/O, no threads, no clock. The owner's mutex guards it.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_QUEUE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/extent.h"
#include "base/extent_set.h"
#include "base/local_record.h"
#include "client_vfd/session/state/group_progress.h"

namespace h5mirror::vfd {

// The kind of a barrier. Tick: visible; sync: visible and durable; commit: a version too.
enum class CutKind { kTick, kSync, kCommit };

// The end of a cut, as its barrier tells it.
struct CutEnd {
  CutKind kind = CutKind::kTick;
  uint64_t size_bytes = 0;
  std::string comment;
  std::optional<FileStat> local;  // at a clean close
  absl::Time time;                // when the cut was closed; it may be sent much later
  uint64_t ticket = 0;            // the owner's number for the cut; increases
  std::optional<GroupCut> group;  // what it belongs to
};

// Ranges that were changed, and the smallest size that the file had meanwhile; unset: it was never
// cut off.
struct Changes {
  static constexpr size_t kExtentsMax = 32768;

  ExtentSet extents{kExtentsMax};
  std::optional<uint64_t> truncate;

  void Absorb(const Changes& other);
  bool empty() const { return extents.empty() && !truncate; }
};

// A range to send. `saved`: its bytes, where they were copied out; empty: read them from the file.
struct Piece {
  Extent extent;
  std::string saved;
};

struct SendTruncate {
  uint64_t size_bytes = 0;
};
struct SendWrites {
  std::vector<Piece> pieces;
};
struct SendBarrier {
  uint64_t seq = 0;
  CutEnd end;
};
using Work = std::variant<std::monostate, SendTruncate, SendWrites, SendBarrier>;

class CutQueue {
 public:
  // No bound: the ranges cover just what was written, whatever memory that takes.
  static constexpr size_t kExact = 0;

  // `extents_max`: of the open cut.
  explicit CutQueue(size_t extents_max = Changes::kExtentsMax)
      : extents_max_(extents_max), open_(NewCut()), sending_(NoChanges()) {}

  // The program's side, in the order of its calls.
  void AddWrite(Extent extent) { open_.changes.extents.Add(extent); }
  // A change of the open cut that another process has sent already. No closed cut may wait.
  void AddHandedOut(Extent extent) { sending_.extents.Add(extent); }
  void Truncate(uint64_t size_bytes);
  // Ends the open cut. A tick ends nothing while too many cuts wait to be sent.
  void Close(CutEnd end);

  // The parts of `extent` that a closed cut still has to read from the file.
  std::vector<Extent> AtRisk(Extent extent) const;
  // True: the sender is reading bytes of a closed cut within `extent`. Wait until this is false.
  bool IsBeingRead(Extent extent) const;
  // Keeps `bytes`, a copy of `extent`, which is one that AtRisk() gave.
  void Save(Extent extent, std::string bytes);
  uint64_t saved_bytes() const { return saved_bytes_; }
  // Frees copies: the oldest closed tick joins the cut after it. Where the two have too many
  // ranges, the newest closed cut joins the open one, if it is a tick. False: nothing was joined.
  bool MergeTick();

  // The sender's side. The next work: at most `bytes_max` bytes in `extents_max` pieces; none
  // of an open cut of less than `open_bytes_min` bytes. monostate: nothing. Pieces count as being
  // read until DoneReading().
  Work Next(uint64_t bytes_max, size_t extents_max, uint64_t open_bytes_min);
  void DoneReading() { reading_.clear(); }
  // True: every closed cut was handed out, and its bytes are read.
  bool drained() const { return closed_.empty() && reading_.empty(); }

  // Puts the pieces that were handed out back into their cut; inherited changes stay where they
  // are. False, and nothing is done: a barrier or a copy was handed out, or the file may hold newer
  // bytes by now.
  bool TakeBack();

  // All barriers up to `seq`, included, are durable: forgets their changes.
  void ForgetDurable(uint64_t seq);
  // The stream is lost: puts everything that is not durable into the open cut.
  void SendAgain();

  // The changes that were handed out and are not durable yet. The queue of the next session takes
  // them by Inherit(), and forgets them with its own first durable barrier.
  Changes NotDurable() const;
  // The changes that SendAgain() would leave in the open cut.
  Changes Everything() const;
  const Changes& open_changes() const { return open_.changes; }
  void AddChanges(const Changes& changes) { open_.changes.Absorb(changes); }
  void Inherit(Changes changes) { unacked_.push_front({0, std::move(changes)}); }

  uint64_t pending_bytes() const;
  // The bytes of closed cuts that are not read from the file yet.
  uint64_t unread_bytes() const;
  // How many cuts are not durable, sent or not.
  size_t pending_cuts() const { return closed_.size() + unacked_.size(); }
  size_t closed_cuts() const { return closed_.size(); }
  uint64_t open_bytes() const { return open_.changes.extents.byte_count(); }
  bool has_closed() const { return !closed_.empty(); }
  // True: everything handed out lies before a barrier, and no truncate is to come. Then other
  // processes may send parts of the next cut: no older bytes can overwrite them, and no truncate
  // can cut them off.
  bool IsAtBarrier() const {
    return closed_.empty() && reading_.empty() && sending_.empty() && !open_.changes.truncate;
  }
  uint64_t last_seq() const { return last_seq_; }

 private:
  struct Cut {
    Changes changes;
    std::map<uint64_t, std::string> saved;  // offset -> bytes copied out
    CutEnd end;
  };
  struct Unacked {
    uint64_t seq = 0;
    Changes changes;
  };

  Cut NewCut() const;
  Changes NoChanges() const;
  static std::vector<Extent> NotHeld(const Cut& cut, Extent extent);
  // Joins a closed cut with the one after it, which may be the open one.
  void Merge(std::deque<Cut>::iterator tick);
  void TakeSaved(Cut& cut, uint64_t bytes_max, size_t extents_max, SendWrites* work);
  void TakeFromFile(Cut& cut, uint64_t bytes_max, size_t extents_max, SendWrites* work);
  static void DropBeyond(Cut& cut, uint64_t size_bytes, uint64_t* saved_bytes);

  const size_t extents_max_;
  Cut open_;
  std::deque<Cut> closed_;
  Changes sending_;              // handed out since the last barrier
  bool sent_saved_ = false;      // copies are among them, which are gone here
  std::deque<Unacked> unacked_;  // by barrier, until durable
  std::vector<Extent> reading_;
  bool reading_closed_ = false;
  uint64_t cursor_ = 0;
  uint64_t saved_bytes_ = 0;
  uint64_t last_seq_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_QUEUE_H_
