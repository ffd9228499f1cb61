#include "client_vfd/session/state/outside_cut.h"

#include "absl/strings/str_cat.h"

namespace h5mirror::vfd {

void OutsideCut::Send(uint64_t ticket, uint64_t bytes) {
  phase_ = Phase::kOnItsWay;
  ticket_ = ticket;
  bytes_ = bytes;
}

void OutsideCut::OnDurable(const CutTickets& tickets) {
  if (tickets.IsLost(ticket_) || tickets.Acked(ticket_, H5M_ACK_DURABLE)) ticket_ = 0;
}

std::string OutsideCut::CommentOf(CutKind kind, std::string comment,
                                  const CutTickets& tickets) const {
  const bool is_lost = ticket_ != 0 && tickets.IsLost(ticket_);
  if (!is_lost || kind != CutKind::kCommit) return comment;
  return comment.empty() ? absl::StrCat("with an ", kComment)
                         : absl::StrCat(comment, " (with an ", kComment, ")");
}

}  // namespace h5mirror::vfd
