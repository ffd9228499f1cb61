#include "swmr_agent/incoming_cut.h"

#include <string_view>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::agent {

absl::StatusOr<std::optional<IncomingCut::Complete>> IncomingCut::Take(
    const v1::FollowFileResponse& message) {
  if (message.has_snapshot()) {
    H5M_RETURN_IF_ERROR(Begin(message));
  } else if (!pending_) {
    return absl::InternalError("the server sent a part of a cut before its beginning");
  }
  H5M_RETURN_IF_ERROR(Learn(message));
  if (!message.last()) return std::nullopt;
  after_cut_ = pending_->snapshot.cut();
  file_id_ = pending_->snapshot.file_id();
  image_ = pending_->image;
  std::optional<Complete> complete = std::move(pending_);
  pending_.reset();
  return complete;
}

absl::Status IncomingCut::Begin(const v1::FollowFileResponse& message) {
  const v1::Snapshot& snapshot = message.snapshot();
  if (snapshot.cut() <= 0 || snapshot.size_bytes() < 0 ||
      message.changed_offset_size() != message.changed_length_size()) {
    return absl::InternalError(StrCat("the server sent a cut that makes no sense: ", snapshot.cut(),
                                      " of ", snapshot.size_bytes(), " bytes"));
  }
  Complete next;
  next.snapshot = snapshot;
  next.snapshot.set_file_id(message.file_id());
  next.has_writer = message.has_writer();
  next.whole = message.whole() || image_ == nullptr || message.file_id() != file_id_;
  const auto size_bytes = static_cast<uint64_t>(snapshot.size_bytes());
  for (int i = 0; !next.whole && i < message.changed_offset_size(); ++i) {
    next.changed.push_back({message.changed_offset(i), message.changed_length(i)});
  }
  rpc::RangeReader ranges = ranges_(next.snapshot);
  next.image = next.whole ? std::make_shared<CutImage>(pool_, size_bytes, std::move(ranges))
                          : image_->Next(size_bytes, std::move(ranges), next.changed);
  pending_ = std::move(next);
  return absl::OkStatus();
}

absl::Status IncomingCut::Learn(const v1::FollowFileResponse& message) {
  if (message.data_offset_size() != message.data_length_size()) {
    return absl::InternalError("the server sent metadata without its place");
  }
  if (!message.data().empty() && Crc32c(message.data()) != message.data_crc32c()) {
    return absl::DataLossError(
        StrCat("metadata of cut ", pending_->snapshot.cut(), " was damaged on the way"));
  }
  std::string_view data = message.data();
  const uint64_t size_bytes = pending_->image->size_bytes();
  for (int i = 0; i < message.data_offset_size(); ++i) {
    const uint64_t offset = message.data_offset(i), length = message.data_length(i);
    const bool fits =
        length <= data.size() && offset <= size_bytes && length <= size_bytes - offset;
    const bool is_whole =
        offset % kPageBytes == 0 && (length % kPageBytes == 0 || offset + length == size_bytes);
    if (!fits || !is_whole) {
      return absl::InternalError(StrCat("the server sent metadata [", offset, ", +", length,
                                        "), which is not whole pages of the cut"));
    }
    pending_->image->Learn(offset, data.substr(0, length));
    data.remove_prefix(length);
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::agent
