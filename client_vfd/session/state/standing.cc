#include "client_vfd/session/state/standing.h"

#include <utility>

namespace h5mirror::vfd {

void Standing::OnOpened() {
  *this = Standing();
  phase_ = Phase::kMirroring;
}

Standing::Audience Standing::GoBehind(std::string detail, Audience most, absl::Time now) {
  if (is_diverged()) return Audience::kNobody;
  const bool is_news = !is_behind();
  phase_ = Phase::kBehind;
  detail_ = std::move(detail);
  if (behind_since_ == absl::InfinitePast()) behind_since_ = now;
  const bool to_user = most == Audience::kUser && !user_knows_;
  user_knows_ = user_knows_ || to_user;
  if (to_user) return Audience::kUser;
  return is_news ? Audience::kProgram : Audience::kNobody;
}

void Standing::Diverge(std::string detail) {
  phase_ = Phase::kDiverged;
  detail_ = std::move(detail);
}

void Standing::EndBehind(std::string detail) {
  phase_ = Phase::kBehind;
  detail_ = std::move(detail);
}

void Standing::Explain(const std::string& detail) {
  if (detail_.empty()) detail_ = detail;
}

H5mState Standing::Told(bool resyncs) const {
  switch (phase_) {
    case Phase::kConnecting:
      return H5M_STATE_CONNECTING;
    case Phase::kMirroring:
      return resyncs ? H5M_STATE_RESYNCING : H5M_STATE_MIRRORING;
    case Phase::kBehind:
      return H5M_STATE_BEHIND;
    case Phase::kDiverged:
      return H5M_STATE_DIVERGED;
    case Phase::kClean:
      break;
  }
  return H5M_STATE_CLEAN;
}

}  // namespace h5mirror::vfd
