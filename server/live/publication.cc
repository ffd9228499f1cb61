#include "server/live/publication.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "onion_store/metadata_map.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kPage = store::MetadataMap::kPageBytes;
constexpr size_t kChangedMax = 1 << 16;  // ranges in one message

// Whole pages, as metadata is sent.
Extent WholePages(Extent extent, uint64_t size_bytes) {
  const uint64_t begin = extent.offset / kPage * kPage;
  const uint64_t end = std::min((extent.end() + kPage - 1) / kPage * kPage, size_bytes);
  return {begin, end > begin ? end - begin : 0};
}

// Splits the ranges into messages of at most `part_bytes` each; at least one message.
std::vector<std::vector<Extent>> SplitUp(const std::vector<Extent>& ranges, uint64_t part_bytes) {
  std::vector<std::vector<Extent>> parts(1);
  uint64_t room = part_bytes;
  for (Extent range : ranges) {
    while (range.length > 0) {
      if (room == 0) {
        parts.emplace_back();
        room = part_bytes;
      }
      const uint64_t length = std::min(room, range.length);
      parts.back().push_back({range.offset, length});
      range = {range.offset + length, range.length - length};
      room -= length;
    }
  }
  return parts;
}

grpc::ByteBuffer Encode(const v1::FollowFileResponse& message) {
  std::string bytes;
  message.SerializeToString(&bytes);
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

CutMessages::CutMessages(std::shared_ptr<store::Snapshot> snapshot, v1::FollowFileResponse first,
                         const std::vector<Extent>& metadata, Keep keep)
    : snapshot_(std::move(snapshot)),
      first_(std::move(first)),
      parts_(SplitUp(metadata, kPartBytes)) {
  absl::MutexLock lock(&mutex_);
  if (keep == Keep::kSmall && TotalBytes(metadata) <= kKeptBytesMax) kept_.resize(parts_.size());
}

absl::StatusOr<std::optional<grpc::ByteBuffer>> CutMessages::Get(size_t index) {
  if (index >= parts_.size()) return std::nullopt;
  {
    // All followers want the same message, and one of them reads it.
    const auto is_free = [this, index]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return kept_.empty() || !kept_[index].is_being_made;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&is_free));
    if (!kept_.empty()) {
      if (kept_[index].message) return kept_[index].message;
      kept_[index].is_being_made = true;
    }
  }
  absl::StatusOr<grpc::ByteBuffer> message = Make(index);
  {
    absl::MutexLock lock(&mutex_);
    if (!kept_.empty()) {
      kept_[index].is_being_made = false;
      if (message.ok()) kept_[index].message = *message;
    }
  }
  H5M_RETURN_IF_ERROR(message.status());
  return *std::move(message);
}

void CutMessages::KeepNoMore() {
  absl::MutexLock lock(&mutex_);
  kept_ = {};
}

uint64_t CutMessages::kept_bytes() {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const Kept& each : kept_) bytes += each.message ? each.message->Length() : 0;
  return bytes;
}

absl::StatusOr<grpc::ByteBuffer> CutMessages::Make(size_t index) const {
  v1::FollowFileResponse message;
  if (index == 0) message = first_;
  std::string& data = *message.mutable_data();
  data.resize(TotalBytes(parts_[index]));
  H5M_RETURN_IF_ERROR(snapshot_->ReadRanges(parts_[index], absl::MakeSpan(data)));
  for (const Extent& range : parts_[index]) {
    message.add_data_offset(range.offset);
    message.add_data_length(range.length);
  }
  message.set_data_crc32c(Crc32c(data));
  message.set_last(index + 1 == parts_.size());
  return Encode(message);
}

Publication::Publication(std::shared_ptr<store::File> file,
                         std::shared_ptr<store::Snapshot> snapshot, store::FileId file_id,
                         absl::Time time, bool has_writer)
    : file_(std::move(file)),
      snapshot_(std::move(snapshot)),
      file_id_(file_id),
      time_(time),
      has_writer_(has_writer) {}

std::shared_ptr<CutMessages> Publication::MessagesFrom(store::CutNumber from,
                                                       std::string_view file_id,
                                                       uint64_t metadata_bytes_max) {
  if (file_id != this->file_id()) from = 0;
  const Key key(from, metadata_bytes_max);
  absl::MutexLock lock(&mutex_);
  const auto found = messages_.find(key);
  if (found != messages_.end()) return found->second;
  const bool is_kept = is_shared_ && messages_.size() < kChangesMax;
  auto messages = MakeMessages(from, metadata_bytes_max,
                               is_kept ? CutMessages::Keep::kSmall : CutMessages::Keep::kNone);
  if (is_kept) messages_.emplace(key, messages);
  return messages;
}

void Publication::EndSharing() {
  std::map<Key, std::shared_ptr<CutMessages>> messages;
  {
    absl::MutexLock lock(&mutex_);
    is_shared_ = false;
    messages.swap(messages_);
  }
  for (const auto& [key, each] : messages) each->KeepNoMore();
}

uint64_t Publication::kept_bytes() {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& [key, messages] : messages_) bytes += messages->kept_bytes();
  return bytes;
}

std::shared_ptr<CutMessages> Publication::MakeMessages(store::CutNumber from,
                                                       uint64_t metadata_bytes_max,
                                                       CutMessages::Keep keep) {
  const store::CutInfo& info = snapshot_->info();
  v1::FollowFileResponse first;
  v1::Snapshot& snapshot = *first.mutable_snapshot();
  snapshot.set_cut(info.cut);
  snapshot.set_size_bytes(static_cast<int64_t>(info.size_bytes));
  *snapshot.mutable_server_time() = ToProto(info.time);
  *snapshot.mutable_open_time() = ToProto(time_);
  snapshot.set_version(info.version);
  snapshot.set_generation(info.generation);
  snapshot.set_file_id(file_id_.data(), file_id_.size());
  SetWriter(info, snapshot);
  snapshot.set_of_group(info.of_group);
  first.set_file_id(file_id_.data(), file_id_.size());
  first.set_has_writer(has_writer_);
  std::vector<Extent> changed;
  const bool is_older = from > 0 && from <= info.cut;
  const absl::StatusOr<std::vector<Extent>> known =
      is_older ? file_->ChangesBetween(from, info.cut) : absl::OutOfRangeError("all of it");
  first.set_whole(!known.ok());
  if (known.ok()) {
    ExtentSet bounded(kChangedMax);
    for (const Extent& extent : *known) bounded.Add(extent);
    changed = bounded.ToVector();
    for (const Extent& extent : changed) {
      first.add_changed_offset(extent.offset);
      first.add_changed_length(extent.length);
    }
  } else {
    changed = {{0, info.size_bytes}};
  }
  ExtentSet metadata;
  for (const Extent& extent : changed) {
    const Extent pages = WholePages(extent, info.size_bytes);
    if (pages.length == 0) continue;
    for (const Extent& part : file_->metadata().Within(pages)) metadata.Add(part);
    if (metadata.byte_count() >= metadata_bytes_max) break;
  }
  return std::make_shared<CutMessages>(
      snapshot_, std::move(first),
      metadata.Take(0, metadata_bytes_max - metadata_bytes_max % kPage, SIZE_MAX), keep);
}

}  // namespace h5mirror::server
