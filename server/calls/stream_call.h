// A call that sends a stream of messages and holds no thread while its client does not read.
#ifndef H5MIRROR_SERVER_CALLS_STREAM_CALL_H_
#define H5MIRROR_SERVER_CALLS_STREAM_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/calls/call.h"
#include "server/calls/raw_message.h"

namespace h5mirror::server {

// The state of the call, for a source that makes a message.
struct StreamTurn {
  // The most bytes of data in one message; less when there are many reads.
  uint64_t part_bytes;
  // True: the call has ended or must end, and no message can be sent.
  const std::atomic<bool>& is_cancelled;
};

// The messages of one call, in order. Called by one worker at a time.
class StreamSource {
 public:
  enum class Next : uint8_t {
    kMessage,
    kLastMessage,
    kNothingYet,  // call again: another call may have a turn meanwhile
    kEnd,
  };
  virtual ~StreamSource() = default;
  // May wait for a disk, but not for a client. Makes `message` if it returns one of the first two.
  // Not called again after kLastMessage, kEnd or an error.
  virtual absl::StatusOr<Next> Make(const StreamTurn& turn, grpc::ByteBuffer& message) = 0;
};

// A source of typed messages, made in memory that is reused for many calls.
template <typename Response>
class TypedStreamSource : public StreamSource {
 public:
  // `message` is empty. As Make().
  virtual absl::StatusOr<Next> Fill(const StreamTurn& turn, Response& message) = 0;

  absl::StatusOr<Next> Make(const StreamTurn& turn, grpc::ByteBuffer& message) final {
    static thread_local Response response;
    response.Clear();
    const absl::StatusOr<Next> next = Fill(turn, response);
    if (next.ok() && (*next == Next::kMessage || *next == Next::kLastMessage)) {
      message = EncodeMessage(response);
    }
    return next;
  }
};

using StreamReactor = grpc::ServerWriteReactor<grpc::ByteBuffer>;
using MakeStreamSource =
    std::function<absl::StatusOr<std::unique_ptr<StreamSource>>(const Callers::Ticket& ticket)>;

// Begins a call: admits the caller, which must have `right`, and sends the messages of the source
// that `make` returns. One message is sent while the next is made. gRPC destroys the call when it
// has ended. `environment`, and the objects that `make` refers to, must outlive the call. `make`
// must not wait.
StreamReactor* StartStream(const ServiceEnvironment& environment,
                           const grpc::CallbackServerContext& context, const char* method,
                           Right right, uint64_t request_bytes, const MakeStreamSource& make);

// A source that is made by the worker that sends its first message, between the two checks.
class LateStreamSource final : public StreamSource {
 public:
  using MakeSource = std::function<absl::StatusOr<std::unique_ptr<StreamSource>>()>;
  LateStreamSource(LateCheck late, MakeSource make)
      : late_(std::move(late)), make_(std::move(make)) {}

  absl::StatusOr<Next> Make(const StreamTurn& turn, grpc::ByteBuffer& message) override {
    if (source_ == nullptr) {
      if (absl::Status may = late_.before(); !may.ok()) return may;
      auto made = make_();
      if (!made.ok()) return made.status();
      source_ = *std::move(made);
      auto first = source_->Make(turn, message);  // opens the file
      if (absl::Status may = late_.after(); !may.ok()) return may;
      return first;
    }
    return source_->Make(turn, message);
  }

 private:
  const LateCheck late_;
  const MakeSource make_;
  std::unique_ptr<StreamSource> source_;  // null: not made yet
};

// The version that a request names; 0: none.
template <typename Request>
int64_t VersionOf(const Request& request) {
  if constexpr (requires { int64_t{request.version()}; }) return request.version();
  return 0;
}

// The same for a request that comes as bytes: `right` to the file that it names. `make` gets the
// parsed request and the principal. It may be called later, by a worker, and so it is copied.
template <typename Request, typename Make>
StreamReactor* StartStream(const ServiceEnvironment& environment,
                           const grpc::CallbackServerContext& context, const char* method,
                           Right right, const grpc::ByteBuffer& bytes, const Make& make) {
  return StartStream(
      environment, context, method, right, bytes.Length(),
      [&](const Callers::Ticket& ticket) -> absl::StatusOr<std::unique_ptr<StreamSource>> {
        auto request = ParseMessage<Request>(bytes);
        if (!request.ok()) return request.status();
        Need need{right, request->name(), VersionOf(*request)};
        if (environment.authenticator.asks_owners()) {
          return std::make_unique<LateStreamSource>(
              ticket.RequireLater(std::move(need)),
              [make, request = *std::move(request),
               principal = ticket.principal()]() -> absl::StatusOr<std::unique_ptr<StreamSource>> {
                return make(request, principal);
              });
        }
        if (absl::Status may = ticket.Require(std::move(need)); !may.ok()) return may;
        return make(*std::move(request), ticket.principal());
      });
}

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_STREAM_CALL_H_
