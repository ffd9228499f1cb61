// Parts of a cut that other processes send (JoinSession of mirror.proto), as the session sees them.
//
// The ranges of a part count as handed out: they belong to the next barrier, and if the stream is
// lost before that is durable, the session itself sends them again.
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {

std::optional<PartTicket> Session::TicketForPart() {
  absl::MutexLock lock(&mutex_);
  if (!config_.takes_parts || !collecting()) return std::nullopt;
  const auto place = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return link_.is_open() && queue_.IsAtBarrier() ? parts_.Next() : std::nullopt;
  };
  // Only the close of the cut that comes brings the next barrier: waiting for it is in vain.
  const auto is_begun = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.has_closed() && !queue_.IsAtBarrier();
  };
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool is_away = link_.is_none() && !standing_.is_connecting();
    const bool is_refused = link_.is_open() && !parts_.takes();
    return is_away || is_refused || is_begun() || !may_be_answered() || place().has_value();
  };
  if (!settled()) {
    BeginWait();
    if (Await(settled, host_.Now(), config_.linger) == Waited::kSilent) TimeOut();
  }
  const std::optional<StreamParts::Place> found = place();
  if (!found) return std::nullopt;
  return PartTicket{session_id_, join_secret_, *found};
}

bool Session::EndPart(const StreamParts::Place& place, const std::vector<Extent>& extents,
                      PartEnd end) {
  absl::MutexLock lock(&mutex_);
  if (end == PartEnd::kFailed) {
    parts_.Spoil(place);
    return false;
  }
  uint64_t bytes = 0;
  for (const Extent& extent : extents) bytes += extent.length;
  if (!link_.is_open() || queue_.has_closed() || !parts_.Add(place, bytes)) return false;
  watch_.OnWrite();
  for (const Extent& extent : extents) queue_.AddHandedOut(extent);
  return true;
}

}  // namespace h5mirror::vfd
