// The cut of what a program without the driver has changed, which goes to the server before this
// program changes anything.
//
//   kNone --Find--> kFound --Send--> kOnItsWay --Settle--> kNone
//                     |
//                     +--FindNothing: only the file's times differ--> kNone
//
// A program does not wait for it for long. Its cut stays known until it is durable: if it is lost,
// what changed outside becomes part of the next version, whose comment says so.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_OUTSIDE_CUT_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_OUTSIDE_CUT_H_

#include <cstdint>
#include <string>

#include "client_vfd/session/state/cut_queue.h"
#include "client_vfd/session/state/cut_tickets.h"

namespace h5mirror::vfd {

// Pure, not thread-safe.
class OutsideCut {
 public:
  enum class Phase { kNone, kFound, kOnItsWay };

  // The version's comment.
  static constexpr char kComment[] = "outside change";

  void Find() { phase_ = Phase::kFound; }
  void FindNothing() { phase_ = Phase::kNone; }
  // `ticket`: of its cut, 0 if none was closed. `bytes`: that are sent.
  void Send(uint64_t ticket, uint64_t bytes);
  // The program goes on, whatever has become of the cut.
  void Settle() { phase_ = Phase::kNone; }
  // The server has it.
  void Forget() { ticket_ = 0; }
  // Some cuts are durable.
  void OnDurable(const CutTickets& tickets);

  Phase phase() const { return phase_; }
  uint64_t bytes() const { return bytes_; }
  // The comment of another cut: where this one was lost, it is part of the next version.
  std::string CommentOf(CutKind kind, std::string comment, const CutTickets& tickets) const;

 private:
  Phase phase_ = Phase::kNone;
  uint64_t ticket_ = 0;  // 0: there is none, or no more
  uint64_t bytes_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_OUTSIDE_CUT_H_
