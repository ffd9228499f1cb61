#include "client_vfd/session/state/cut_tickets.h"

#include <algorithm>

namespace h5mirror::vfd {
namespace {

// Callers still ask for this many tickets before the newest.
constexpr uint64_t kAskedFor = 64;

}  // namespace

uint64_t CutTickets::Next() {
  ++last_;
  if (sealed()) final_ = last_;
  return last_;
}

void CutTickets::OnVisible(uint64_t seq) { visible_seq_ = std::max(visible_seq_, seq); }

void CutTickets::OnDurable(uint64_t seq) {
  OnVisible(seq);
  durable_seq_ = std::max(durable_seq_, seq);
}

void CutTickets::Forget() {
  const uint64_t recent = last_ > kAskedFor ? last_ - kAskedFor : 0;
  seqs_.erase(seqs_.begin(), seqs_.lower_bound(sealed() ? final_ : recent));
}

CutTickets::Phase CutTickets::PhaseOf(uint64_t ticket) const {
  const auto found = seqs_.find(ticket);
  if (found == seqs_.end()) return Phase::kWaiting;
  if (found->second <= durable_seq_) return Phase::kDurable;
  return found->second <= visible_seq_ ? Phase::kVisible : Phase::kSent;
}

bool CutTickets::Acked(uint64_t ticket, H5mAck ack) const {
  switch (ack) {
    case H5M_ACK_NONE:
      return PhaseOf(ticket) >= Phase::kSent;
    case H5M_ACK_APPLIED:
      return PhaseOf(ticket) >= Phase::kVisible;
    case H5M_ACK_DURABLE:
      break;
  }
  return PhaseOf(ticket) == Phase::kDurable;
}

bool CutTickets::IsOwed() const {
  if (seqs_.empty()) return false;
  const auto& [ticket, seq] = *seqs_.rbegin();
  return !IsLost(ticket) && seq > std::max(visible_seq_, durable_seq_);
}

std::optional<uint64_t> CutTickets::FinalSeq() const {
  const auto found = seqs_.find(final_);
  return found == seqs_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace h5mirror::vfd
