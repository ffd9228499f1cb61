// The cut of the changes that a program without the driver has made. It goes to the server before
// this program changes anything.
//
//   kNone --Find--> kFound --Send--> kOnItsWay --Settle--> kNone
//                     |
//                     +--FindNothing: only the file's times differ--> kNone
//
// The program does not wait long for it. The cut stays known until it is durable. If it is lost,
// the outside changes become part of the next version, and the comment of that version says so.
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
  // `ticket`: of the cut; 0: none was closed. `bytes`: the size of the changes.
  void Send(uint64_t ticket, uint64_t bytes);
  // The program goes on, with or without an answer.
  void Settle() { phase_ = Phase::kNone; }
  // The server has the cut.
  void Forget() { ticket_ = 0; }
  // Some cuts are durable.
  void OnDurable(const CutTickets& tickets);

  Phase phase() const { return phase_; }
  uint64_t bytes() const { return bytes_; }
  // The comment of another cut. If this one was lost, that cut holds its changes too.
  std::string CommentOf(CutKind kind, std::string comment, const CutTickets& tickets) const;

 private:
  Phase phase_ = Phase::kNone;
  uint64_t ticket_ = 0;  // 0: there is none, or no more
  uint64_t bytes_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_OUTSIDE_CUT_H_
