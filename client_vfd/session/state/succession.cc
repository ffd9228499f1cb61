#include "client_vfd/session/state/succession.h"

namespace h5mirror::vfd {

Succession::Followed Succession::Follow(const LocalFacts& facts, Handing handing,
                                        std::optional<Handover>* from) {
  if (!predecessor_) return Followed::kWaits;
  // Where the program ends, its record counts, and nobody waits for the end of its stream.
  const bool has_ended = predecessor_->gone() || (handing == Handing::kNow && predecessor_->done());
  const bool may_inherit = !has_ended && !is_claimed() && awaits_ == Awaits::kHandover;
  if (may_inherit) *from = predecessor_->HandOver(facts, handing);
  if (!has_ended && !*from) return Followed::kWaits;
  predecessor_.reset();
  return Followed::kMayGoOn;
}

Succession::Followed Succession::FollowAtClose(const LocalFacts& facts,
                                               std::optional<Handover>* from) {
  *from = predecessor_->HandOver(facts, Handing::kAtClose);
  // Else its record is not yet what it will be.
  const bool may_go_on = *from || predecessor_->done() || predecessor_->LostFile();
  return may_go_on ? Followed::kMayGoOn : Followed::kWaits;
}

}  // namespace h5mirror::vfd
