// The sender's end of a stream: the messages that are ready, in order, and whether the stream can
// take one.
//
//   kNone --Begin--> kBusy --OnWritable--> kWritable --WriteNext, End--> kBusy
//     ^                |                       |
//     +-----Forget-----+-----------------------+
#ifndef H5MIRROR_CLIENT_VFD_SESSION_OUTBOX_H_
#define H5MIRROR_CLIENT_VFD_SESSION_OUTBOX_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "client_vfd/session/stream.h"
#include "grpcpp/support/byte_buffer.h"

namespace h5mirror::vfd {

// Used by the sender thread only. Borrows the stream until Forget().
class Outbox {
 public:
  enum class Phase { kNone, kBusy, kWritable };
  // kLast: the stream is half-closed after this message. kKeepAlive: small enough for any buffer.
  enum class Kind { kData, kLast, kKeepAlive };

  // Messages may be ready before their stream begins.
  void Push(grpc::ByteBuffer message, Kind kind) { ready_.push_back({std::move(message), kind}); }
  void Begin(Stream* stream);
  // The stream can take the next message.
  void OnWritable();
  // Hands the next message to the stream. False: there is none, or the stream takes none now.
  bool WriteNext();
  // Half-closes the stream, which is writable, behind `last` or at once.
  void End();
  void End(const grpc::ByteBuffer& last);
  // Drops the ready messages. Returns the stream, or nullptr.
  Stream* Forget();

  bool has_stream() const { return phase_ != Phase::kNone; }
  bool is_writable() const { return phase_ == Phase::kWritable; }
  // The stream could take a message, and none is ready.
  bool is_idle() const { return is_writable() && ready_.empty(); }
  // More ready messages would not help: the next frame is read while the last is sent.
  bool is_full() const { return ready_.size() >= kReadyMax + (is_writable() ? 1 : 0); }
  size_t size() const { return ready_.size(); }
  // Stream::Peer() of the stream; empty: there is none.
  std::string peer() const { return stream_ == nullptr ? "" : stream_->Peer(); }
  // The message that was handed to the stream last.
  Kind sending() const { return sending_; }

 private:
  struct Outgoing {
    grpc::ByteBuffer message;
    Kind kind = Kind::kData;
  };

  // Messages ready beside the one under way.
  static constexpr size_t kReadyMax = 1;

  Phase phase_ = Phase::kNone;
  Stream* stream_ = nullptr;
  std::deque<Outgoing> ready_;
  Kind sending_ = Kind::kData;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OUTBOX_H_
