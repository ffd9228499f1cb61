// A request and its answer, apart from the library that speaks HTTP.
#ifndef H5MIRROR_SERVER_HTTP_MESSAGE_H_
#define H5MIRROR_SERVER_HTTP_MESSAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/uninitialized_bytes.h"
#include "server/calls/call_source.h"
#include "server/calls/callers.h"
#include "server/http/preconditions.h"

namespace h5mirror::server {

// A GET or HEAD; the door answers other methods.
struct HttpRequest {
  std::string path = {};  // as it was sent, percent signs and all
  // Decoded, in their order.
  std::vector<std::pair<std::string, std::string>> query = {};
  bool is_head = false;
  bool is_tls = false;  // it came by TLS
  std::optional<std::string> range = std::nullopt;
  std::optional<std::string> last_event_id = std::nullopt;
  Conditions conditions = {};
  std::shared_ptr<const CallSource> source = nullptr;
  // True: nobody waits for the answer any more. Only within the handler's call.
  std::function<bool()> is_cancelled = [] { return false; };
};

// Bytes of a body.
using HttpPart = UninitializedBytes;
inline HttpPart PartOf(std::string_view text) { return HttpPart(text.begin(), text.end()); }

// A body that is made while it is sent.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Calls `then` when a part may be made; at once, unless it waits for an event. Must not wait, and
  // `then` does not. `then` may be destroyed without a call.
  virtual void Await(std::function<void()> then) { then(); }
  // The next bytes, `max_bytes` at most; empty: nothing yet. nullopt: the end. Called by one worker
  // at a time. May wait for a disk, but not for a client.
  virtual absl::StatusOr<std::optional<HttpPart>> Next(uint64_t max_bytes) = 0;
};

struct HttpAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string text = {};                                // the body, if there is no stream
  std::unique_ptr<HttpStream> stream = nullptr;         // one that is too long for that
  std::optional<uint64_t> stream_bytes = std::nullopt;  // nullopt: until it ends
  uint32_t block_bytes = 64 << 10;  // of a stream: a buffer of this size is held for it
  bool is_last = false;             // the connection ends with it
  bool is_endless = false;          // of a HEAD: the body of a GET has no size

  // Of a stream: held until its end.
  std::optional<Callers::Ticket> ticket = std::nullopt;
  const char* method = "";  // of the ticket; a constant
};

// The code of HTTP of a status that is not OK.
int ErrorCodeOf(const absl::Status& status);

// The answer to a call that failed. Its body is JSON: the code as in gRPC, and the message.
HttpAnswer ErrorAnswer(const absl::Status& status);
// The same with a code of HTTP that no status stands for.
HttpAnswer ErrorAnswer(int code, const absl::Status& status);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_MESSAGE_H_
