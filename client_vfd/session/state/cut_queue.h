// The send queue of one session: which bytes of the local file the server does not have yet, cut
// by cut. The bytes themselves stay in the local file; only what a later write would destroy
// before it was sent is copied out here.
//
// Pure: no I/O, no threads, no clock. The owner's mutex guards it.
//
// Invariant: a byte is in the `extents` (to be read from the file) of at most one closed cut,
// since a write to it first copies it out (AtRisk, Save).
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

namespace h5mirror::vfd {

enum class CutKind { kTick, kSync, kCommit };

struct CutEnd {
  CutKind kind = CutKind::kTick;
  uint64_t size_bytes = 0;
  std::string comment;
  std::optional<FileStat> local;  // at a clean close
  absl::Time time;                // when it was closed; it may be sent much later
  uint64_t ticket = 0;            // the owner's name for it; increases
};

// Bytes changed, and the smallest size that the file had meanwhile: the server cuts there first and
// then gets the extents, so that what grew back unwritten reads as zeros.
struct Changes {
  // Covering more than was written only sends more, so the memory can be bounded.
  static constexpr size_t kExtentsMax = 32768;

  ExtentSet extents{kExtentsMax};
  std::optional<uint64_t> truncate;

  void Absorb(const Changes& other);
  bool empty() const { return extents.empty() && !truncate; }
};

// A run of bytes to send: `saved` where it was copied out, else to be read from the file.
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
  // No bound: only what was written is ever sent, whatever memory that takes. For a file that has
  // nothing right in between.
  static constexpr size_t kExact = 0;

  // `extents_max`: of the open cut.
  explicit CutQueue(size_t extents_max = Changes::kExtentsMax)
      : extents_max_(extents_max), open_(NewCut()), sending_(NoChanges()) {}

  // The program's side, in the order of its calls.
  void AddWrite(Extent extent) { open_.changes.extents.Add(extent); }
  void Truncate(uint64_t size_bytes);
  // Ends the open cut. With too many that wait to be sent, a tick ends nothing: the cut goes on.
  void Close(CutEnd end);

  // The parts of `extent` that a closed cut still has to read from the file.
  std::vector<Extent> AtRisk(Extent extent) const;
  // Whether bytes of a closed cut within `extent` are being read right now: wait for that.
  bool IsBeingRead(Extent extent) const;
  // Copies of bytes at risk; `extent` as AtRisk() gave it.
  void Save(Extent extent, std::string bytes);
  uint64_t saved_bytes() const { return saved_bytes_; }
  // Frees copies: a waiting tick joins the cut after it, the oldest first. False if there is none.
  bool MergeTick();

  // The sender's side. What to send next, of at most `bytes_max` in `extents_max` pieces; nothing
  // of an open cut that holds less than `open_bytes_min`. Pieces count as being read until
  // DoneReading().
  Work Next(uint64_t bytes_max, size_t extents_max, uint64_t open_bytes_min);
  void DoneReading() { reading_.clear(); }
  // True if every closed cut was handed out, and its bytes read.
  bool drained() const { return closed_.empty() && reading_.empty(); }

  // Puts what was handed out back in its place, as if it never was; no cut is dropped, and what was
  // inherited stays so. False where that cannot be: a barrier has gone out, or the file may hold
  // newer bytes by now.
  bool TakeBack();

  // All barriers up to `seq` are durable: their bytes need not be sent again.
  void ForgetDurable(uint64_t seq);
  // The stream is lost: everything that is not durable is to be sent again, from what the file
  // holds now, in the open cut. Cuts not sent are dropped.
  void SendAgain();

  // Everything that was handed out and is not durable yet, for a queue that goes on where this one
  // has ended; and its place there: it is forgotten with the first durable barrier.
  Changes NotDurable() const;
  // What SendAgain() would leave in the open cut.
  Changes Everything() const;
  const Changes& open_changes() const { return open_.changes; }
  void AddChanges(const Changes& changes) { open_.changes.Absorb(changes); }
  void Inherit(Changes changes) { unacked_.push_front({0, std::move(changes)}); }

  uint64_t pending_bytes() const;
  // Cuts that are not durable, sent or not.
  size_t pending_cuts() const { return closed_.size() + unacked_.size(); }
  size_t closed_cuts() const { return closed_.size(); }
  uint64_t open_bytes() const { return open_.changes.extents.byte_count(); }
  bool has_closed() const { return !closed_.empty(); }
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
  // Of a closed cut, into the one after it.
  void Merge(std::deque<Cut>::iterator tick);
  void TakeSaved(Cut& cut, uint64_t bytes_max, size_t extents_max, SendWrites* work);
  void TakeFromFile(Cut& cut, uint64_t bytes_max, size_t extents_max, SendWrites* work);
  static void DropBeyond(Cut& cut, uint64_t size_bytes, uint64_t* saved_bytes);

  const size_t extents_max_;
  Cut open_;
  std::deque<Cut> closed_;
  Changes sending_;              // handed out since the last barrier
  bool sent_saved_ = false;      // of them copies that are gone now
  std::deque<Unacked> unacked_;  // by barrier, until durable
  std::vector<Extent> reading_;
  bool reading_closed_ = false;
  uint64_t cursor_ = 0;
  uint64_t saved_bytes_ = 0;
  uint64_t last_seq_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_QUEUE_H_
