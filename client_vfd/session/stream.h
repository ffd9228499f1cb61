// One MirrorFile call, for a session: at most one write is in flight, and no call blocks. All of it
// runs on the sender thread.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STREAM_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STREAM_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "h5mirror/v1/mirror.pb.h"

namespace h5mirror::vfd {

// Gets a stream's events, on the sender thread.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  // The stream can take the next Write().
  virtual void OnWritable() = 0;
  virtual void OnResponse(const v1::MirrorFileResponse& response) = 0;
  // The stream has ended; this is the last call. OK only after HalfClose().
  virtual void OnEnded(const absl::Status& status) = 0;
};

enum class Last { kNo, kYes };

class Stream {
 public:
  virtual ~Stream() = default;
  // Once for each OnWritable(). kYes half-closes behind the message.
  virtual void Write(const grpc::ByteBuffer& message, Last last) = 0;
  // Half-closes, behind the write in flight if there is one.
  virtual void HalfClose() = 0;
  virtual void Cancel() = 0;
  // No further call to the owner.
  virtual void Abandon() = 0;
  // The peer's address, as gRPC writes it; empty: unknown.
  virtual std::string Peer() const { return ""; }
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STREAM_H_
