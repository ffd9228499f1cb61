#include "client_vfd/session/outbox.h"

namespace h5mirror::vfd {

void Outbox::Begin(Stream* stream) {
  stream_ = stream;
  phase_ = Phase::kBusy;
}

void Outbox::OnWritable() {
  if (has_stream()) phase_ = Phase::kWritable;
}

bool Outbox::WriteNext() {
  if (!is_writable() || ready_.empty()) return false;
  const Outgoing next = std::move(ready_.front());
  ready_.pop_front();
  phase_ = Phase::kBusy;
  sending_ = next.kind;
  stream_->Write(next.message, sending_ == Kind::kLast ? Last::kYes : Last::kNo);
  return true;
}

void Outbox::End() {
  phase_ = Phase::kBusy;
  stream_->HalfClose();
}

void Outbox::End(const grpc::ByteBuffer& last) {
  phase_ = Phase::kBusy;
  stream_->Write(last, Last::kYes);
}

Stream* Outbox::Forget() {
  phase_ = Phase::kNone;
  ready_.clear();
  return std::exchange(stream_, nullptr);
}

}  // namespace h5mirror::vfd
