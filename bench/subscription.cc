#include "bench/subscription.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::bench {
namespace {

constexpr absl::Duration kInsistTime = absl::Seconds(60);
constexpr absl::Duration kRefusedPause = absl::Milliseconds(10);
constexpr uint64_t kMetadataMax = uint64_t{1} << 30;

absl::Status Damaged(const std::string& name, uint64_t offset) {
  return absl::DataLossError(StrCat(name, ": bytes at ", offset, " were damaged"));
}

}  // namespace

Subscription::Subscription(std::unique_ptr<rpc::Client> client, std::string name, Reads reads)
    : client_(std::move(client)),
      name_(std::move(name)),
      reads_(reads),
      reader_id_(ToByteString(RandomBytes16())) {}

absl::StatusOr<std::unique_ptr<Subscription>> Subscription::Open(const rpc::ClientOptions& options,
                                                                 const std::string& name,
                                                                 Reads reads,
                                                                 absl::Duration connect_timeout) {
  H5M_ASSIGN_OR_RETURN(auto client, rpc::Client::Connect(options, connect_timeout));
  return absl::WrapUnique(new Subscription(std::move(client), name, reads));
}

Subscription::~Subscription() {
  if (stream_ != nullptr) stream_->Cancel();
  if (receiver_.joinable()) receiver_.join();
}

void Subscription::Start() {
  v1::FollowFileRequest request;
  request.set_name(name_);
  request.set_after_cut(cut_);
  request.set_file_id(file_id_);
  // A follower that reads only the bytes sent to it needs no pinned cut.
  if (reads_ == Reads::kAll) request.set_reader_id(reader_id_);
  request.set_metadata_bytes_max(kMetadataMax);
  request.set_until_no_writer(true);
  stream_ = client_->FollowFile(request);
  {
    absl::MutexLock lock(&inbox_.mutex);
    inbox_.is_over = false;
  }
  receiver_ = std::thread([this] { Receive(*stream_, inbox_); });
}

void Subscription::Receive(rpc::FollowStream& stream, Inbox& inbox) {
  std::vector<v1::FollowFileResponse> cut;
  v1::FollowFileResponse message;
  while (stream.Read(message)) {
    const bool is_last = message.last();
    cut.push_back(std::move(message));
    if (!is_last) continue;
    absl::MutexLock lock(&inbox.mutex);
    inbox.cuts.push_back(std::exchange(cut, {}));
  }
  absl::MutexLock lock(&inbox.mutex);
  inbox.is_over = true;
}

absl::StatusOr<bool> Subscription::Next() {
  if (stream_ == nullptr) Start();
  std::vector<std::vector<v1::FollowFileResponse>> cuts;
  {
    absl::MutexLock lock(&inbox_.mutex);
    inbox_.mutex.Await(absl::Condition(&inbox_, &Inbox::HasNews));
    cuts.swap(inbox_.cuts);
  }
  if (cuts.empty()) {
    receiver_.join();
    const absl::Status end = std::exchange(stream_, nullptr)->Finish();
    if (end.ok()) return false;
    return end;
  }
  for (const auto& cut : cuts) H5M_RETURN_IF_ERROR(TakeCut(cut));
  H5M_RETURN_IF_ERROR(ReadCut());
  return true;
}

absl::Status Subscription::TakeCut(const std::vector<v1::FollowFileResponse>& messages) {
  if (cut_ != 0 && reads_ == Reads::kAll) passed_.push_back(cut_);
  for (const v1::FollowFileResponse& message : messages) {
    if (message.has_snapshot()) Begin(message);
    H5M_RETURN_IF_ERROR(Take(message));
  }
  if (reads_ == Reads::kMetadata) CountHeld();
  return absl::OkStatus();
}

void Subscription::Begin(const v1::FollowFileResponse& first) {
  cut_ = first.snapshot().cut();
  file_id_ = first.file_id();
  image_.resize(static_cast<size_t>(first.snapshot().size_bytes()), '\0');
  if (first.whole()) missing_.Add({0, image_.size()});
  for (int i = 0; i < first.changed_offset_size(); ++i) {
    missing_.Add({first.changed_offset(i), first.changed_length(i)});
  }
  missing_.TruncateTo(image_.size());
}

absl::Status Subscription::Take(const v1::FollowFileResponse& message) {
  if (Crc32c(message.data()) != message.data_crc32c()) return Damaged(name_, 0);
  counts_.received_bytes += message.ByteSizeLong();
  const std::string_view data = message.data();
  size_t at = 0;
  for (int i = 0; i < message.data_offset_size(); ++i) {
    const Extent range{message.data_offset(i), message.data_length(i)};
    if (range.length > data.size() - at) return Damaged(name_, range.offset);
    H5M_RETURN_IF_ERROR(Put(range.offset, data.substr(at, range.length)));
    missing_.Remove(range);
    at += range.length;
  }
  return absl::OkStatus();
}

absl::Status Subscription::Put(uint64_t offset, std::string_view data) {
  if (offset > image_.size() || data.size() > image_.size() - offset) {
    return absl::InternalError(StrCat(name_, ": bytes beyond the end of the cut"));
  }
  data.copy(image_.data() + offset, data.size());
  return absl::OkStatus();
}

absl::Status Subscription::ReadCut() {
  if (reads_ == Reads::kMetadata) return absl::OkStatus();
  const absl::Status status = ReadMissing();
  if (status.ok()) {
    CountHeld();
  } else if (absl::IsOutOfRange(status)) {
    ++counts_.expired;
  } else {
    return status;
  }
  for (const int64_t cut : std::exchange(passed_, {})) H5M_RETURN_IF_ERROR(Close(cut));
  return absl::OkStatus();
}

absl::Status Subscription::Complete() { return ReadMissing(); }

void Subscription::CountHeld() {
  if (held_cut_ != 0) counts_.passed_over += std::max<int64_t>(cut_ - held_cut_ - 1, 0);
  held_cut_ = cut_;
  ++counts_.cuts;
}

absl::Status Subscription::ReadMissing() {
  for (const Extent& range : missing_.ToVector()) {
    H5M_RETURN_IF_ERROR(Insist([&] { return ReadRange(range); }));
    missing_.Remove(range);
  }
  return absl::OkStatus();
}

absl::Status Subscription::Close(int64_t cut) {
  v1::CloseSnapshotRequest close;
  close.set_name(name_);
  close.set_cut(cut);
  close.set_reader_id(reader_id_);
  return Insist([&] { return client_->CloseSnapshot(close); });
}

absl::Status Subscription::Insist(absl::FunctionRef<absl::Status()> call) {
  const absl::Time give_up = absl::Now() + kInsistTime;
  while (true) {
    const absl::Status status = call();
    const bool is_busy = absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status);
    if (!is_busy || absl::Now() > give_up) return status;
    ++counts_.refused;
    absl::SleepFor(kRefusedPause);
  }
}

absl::Status Subscription::ReadRange(Extent range) {
  v1::ReadSnapshotRequest request;
  request.set_name(name_);
  request.set_cut(cut_);
  request.set_file_id(file_id_);
  request.set_reader_id(reader_id_);
  request.set_offset(range.offset);
  request.set_length_bytes(range.length);
  std::fill_n(image_.begin() + static_cast<int64_t>(range.offset), range.length, '\0');
  return client_->ReadSnapshot(request, [&](const v1::ReadSnapshotResponse& part) -> absl::Status {
    if (part.has_snapshot()) return absl::OkStatus();
    if (Crc32c(part.data()) != part.data_crc32c()) return Damaged(name_, part.offset());
    counts_.received_bytes += part.data().size();
    return Put(part.offset(), part.data());
  });
}

}  // namespace h5mirror::bench
