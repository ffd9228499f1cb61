#include "client_vfd/session/grpc_stream.h"

#include <utility>

#include "grpcpp/impl/codegen/proto_utils.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace h5mirror::vfd {
namespace {

constexpr char kMethod[] = "/h5mirror.v1.Mirror/MirrorFile";

}  // namespace

GrpcStream::GrpcStream(const rpc::ClientOptions& options, std::shared_ptr<grpc::Channel> channel,
                       grpc::CompletionQueue* queue, StreamOwner* owner)
    : owner_(owner), channel_(std::move(channel)), stub_(channel_) {
  rpc::Authorize(options, context_);
  call_ = stub_.PrepareCall(&context_, kMethod, queue);
  ++under_way_;
  call_->StartCall(&start_);
}

void GrpcStream::Write(const grpc::ByteBuffer& message, Last last) {
  ++under_way_;
  writing_ = true;
  if (last == Last::kYes) {
    half_closed_ = true;
    call_->WriteLast(message, grpc::WriteOptions(), &write_);
  } else {
    call_->Write(message, &write_);
  }
}

void GrpcStream::HalfClose() {
  if (half_closed_ || finishing_) return;
  if (writing_) {
    half_close_wanted_ = true;
    return;
  }
  half_closed_ = true;
  ++under_way_;
  call_->WritesDone(&write_);
}

void GrpcStream::Finish() {
  if (finishing_) return;
  finishing_ = true;
  ++under_way_;
  call_->Finish(&status_, &finish_);
}

bool GrpcStream::Handle(int op, bool ok) {
  --under_way_;
  switch (op) {
    case kStart:
      OnStarted(ok);
      break;
    case kWrite:
      OnWritten(ok);
      break;
    case kRead:
      OnRead(ok);
      break;
    case kFinish:
      finished_ = true;
      break;
  }
  const bool done = finished_ && under_way_ == 0;
  if (done && owner_ != nullptr) {
    std::exchange(owner_, nullptr)
        ->OnEnded(is_cancelled_ ? rpc::FromGrpc(status_) : rpc::FromServer(status_));
  }
  return done;
}

void GrpcStream::ReadNext() {
  ++under_way_;
  call_->Read(&incoming_, &read_);
}

void GrpcStream::OnStarted(bool ok) {
  writing_ = false;
  if (!ok) return Finish();
  ReadNext();
  if (half_close_wanted_) HalfClose();
  if (!half_closed_ && owner_ != nullptr) owner_->OnWritable();
}

void GrpcStream::OnWritten(bool ok) {
  writing_ = false;
  if (half_close_wanted_) HalfClose();
  // A failed write says nothing itself; the read fails too and Finish() tells why.
  if (ok && !half_closed_ && !finishing_ && owner_ != nullptr) owner_->OnWritable();
}

void GrpcStream::OnRead(bool ok) {
  if (!ok) return Finish();
  v1::MirrorFileResponse response;
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::MirrorFileResponse>::Deserialize(&incoming_, &response);
  incoming_.Clear();
  if (!parsed.ok()) Cancel();
  ReadNext();
  if (parsed.ok() && owner_ != nullptr) owner_->OnResponse(response);
}

}  // namespace h5mirror::vfd
