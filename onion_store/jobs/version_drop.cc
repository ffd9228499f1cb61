#include "onion_store/jobs/version_drop.h"

#include <algorithm>

#include "absl/types/span.h"
#include "base/status_macros.h"

namespace h5mirror::store {
namespace {

constexpr size_t kDropVersions = 256;
constexpr size_t kMoveRows = 2048;

}  // namespace

absl::StatusOr<bool> VersionDrop::Step() {
  if (!is_moving_) {
    H5M_RETURN_IF_ERROR(Drop());
    return true;
  }
  H5M_ASSIGN_OR_RETURN(is_moving_, Move());
  return is_moving_ || next_ < versions_.size();
}

absl::Status VersionDrop::Drop() {
  const auto chunk = absl::MakeConstSpan(versions_).subspan(next_, kDropVersions);
  // Before any row moves: a reader that still sees the old epoch looked up its rows earlier. But
  // not before the versions go: a reader that opens one of them in between must notice, too.
  absl::Status dropped = index_.DropVersions(chunk);
  dropped_.Advance();
  H5M_RETURN_IF_ERROR(dropped);
  next_ += chunk.size();
  cursor_ = MoveCursor();
  is_moving_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> VersionDrop::Move() {
  const auto dropped = static_cast<int64_t>(next_);
  int64_t moved = 0;
  H5M_ASSIGN_OR_RETURN(const bool more,
                       index_.MoveDropped(page_size_bytes_, kMoveRows, &cursor_, &moved));
  // Some versions have no rows; and some rows are of versions that an earlier job dropped.
  done_ = more ? std::min(done_ + moved, dropped) : dropped;
  return more;
}

}  // namespace h5mirror::store
