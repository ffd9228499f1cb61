#include "bench/subscription.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace h5mirror::bench {
namespace {

constexpr absl::Duration kCallTime = absl::Seconds(60);
constexpr absl::Duration kRefusedPause = absl::Milliseconds(10);

void Prepare(const rpc::ClientOptions& options, absl::Duration timeout,
             grpc::ClientContext& context) {
  rpc::Authorize(options, context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

absl::Status Take(const std::string& name, const v1::ReadSnapshotResponse& part,
                  std::string& image) {
  if (part.has_snapshot()) {
    image.assign(static_cast<size_t>(part.snapshot().size_bytes()), '\0');
    return absl::OkStatus();
  }
  if (part.offset() > image.size() || part.data().size() > image.size() - part.offset()) {
    return absl::InternalError(StrCat(name, ": bytes beyond the end of the cut"));
  }
  if (part.has_data_crc32c() && Crc32c(part.data()) != part.data_crc32c()) {
    return absl::DataLossError(StrCat(name, ": bytes at ", part.offset(), " were damaged"));
  }
  part.data().copy(image.data() + part.offset(), part.data().size());
  return absl::OkStatus();
}

}  // namespace

Subscription::Subscription(const rpc::ClientOptions& options, std::string name)
    : options_(options),
      name_(std::move(name)),
      reader_id_(ToByteString(RandomBytes16())),
      channel_(rpc::MakeChannel(options)),
      stub_(v1::Snapshots::NewStub(channel_)) {}

absl::StatusOr<std::unique_ptr<Subscription>> Subscription::Open(const rpc::ClientOptions& options,
                                                                 const std::string& name,
                                                                 absl::Duration connect_timeout) {
  auto subscription = absl::WrapUnique(new Subscription(options, name));
  H5M_RETURN_IF_ERROR(rpc::WaitConnected(*subscription->channel_, options, connect_timeout));
  return subscription;
}

absl::StatusOr<bool> Subscription::Next(absl::Duration timeout) {
  H5M_ASSIGN_OR_RETURN(const v1::WaitForCutResponse answer, Wait(timeout));
  if (answer.cut() > cut_) {
    H5M_RETURN_IF_ERROR(ReadNewest());
    return true;
  }
  if (answer.has_writer()) {
    return absl::DeadlineExceededError(
        StrCat(name_, ": no cut after ", cut_, " within ", absl::FormatDuration(timeout)));
  }
  return false;
}

absl::StatusOr<v1::WaitForCutResponse> Subscription::Wait(absl::Duration timeout) {
  v1::WaitForCutRequest request;
  request.set_name(name_);
  request.set_after_cut(cut_);
  request.mutable_timeout()->set_seconds(absl::ToInt64Seconds(timeout));
  request.set_or_no_writer(true);
  v1::WaitForCutResponse response;
  H5M_RETURN_IF_ERROR(Insist([&] {
    grpc::ClientContext context;
    Prepare(options_, timeout + kCallTime, context);
    return rpc::FromGrpc(stub_->WaitForCut(&context, request, &response));
  }));
  return response;
}

absl::Status Subscription::Insist(absl::FunctionRef<absl::Status()> call) {
  const absl::Time give_up = absl::Now() + kCallTime;
  while (true) {
    const absl::Status status = call();
    if (!absl::IsResourceExhausted(status) || absl::Now() > give_up) return status;
    ++refused_;
    absl::SleepFor(kRefusedPause);
  }
}

absl::Status Subscription::ReadNewest() {
  int64_t cut = 0;
  H5M_RETURN_IF_ERROR(Insist([&] { return ReadOnce(cut); }));
  H5M_RETURN_IF_ERROR(Insist([&] { return Close(cut); }));
  cut_ = cut;
  return absl::OkStatus();
}

absl::Status Subscription::ReadOnce(int64_t& cut) {
  grpc::ClientContext context;
  Prepare(options_, kCallTime, context);
  v1::ReadSnapshotRequest request;
  request.set_name(name_);
  request.set_reader_id(reader_id_);
  const auto stream = stub_->ReadSnapshot(&context, request);
  v1::ReadSnapshotResponse part;
  absl::Status status;
  while (status.ok() && stream->Read(&part)) {
    if (part.has_snapshot()) cut = part.snapshot().cut();
    received_bytes_ += part.data().size();
    status = Take(name_, part, image_);
  }
  if (!status.ok()) context.TryCancel();
  const absl::Status end = rpc::FromGrpc(stream->Finish());
  return status.ok() ? end : status;
}

absl::Status Subscription::Close(int64_t cut) {
  grpc::ClientContext context;
  Prepare(options_, kCallTime, context);
  v1::CloseSnapshotRequest close;
  close.set_name(name_);
  close.set_cut(cut);
  close.set_reader_id(reader_id_);
  v1::CloseSnapshotResponse closed;
  return rpc::FromGrpc(stub_->CloseSnapshot(&context, close, &closed));
}

}  // namespace h5mirror::bench
