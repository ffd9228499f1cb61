// HTTP calls with a small answer, by libcurl. The first call loads the library at run time, so our
// programs start without it.
#ifndef H5MIRROR_BASE_CURL_LIBRARY_H_
#define H5MIRROR_BASE_CURL_LIBRARY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace h5mirror {

enum class HttpMethod { kGet, kPost, kPut, kHead, kDelete };

// A body that is not in memory. `read` fills its span with the body's bytes from `offset` on. The
// span ends within the body. The same bytes may be asked for again. Must outlive the call.
struct HttpBody {
  uint64_t size_bytes = 0;
  std::function<absl::Status(uint64_t offset, absl::Span<char> out)> read = nullptr;
};

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string url = {};                   // http:// or https://
  std::vector<std::string> headers = {};  // "Name: value"
  std::string body = {};                  // of kPost and kPut
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration timeout = absl::Seconds(30);  // of the whole call
  size_t max_answer_bytes = size_t{1} << 20;
  std::string ca_file = {};  // PEM of the authorities to trust; empty: those of the system
  // If another thread sets it, the call ends within some 1 s. May be nullptr; must outlive the
  // call.
  const std::atomic<bool>* cancel = nullptr;
  // With kPut, in place of `body`. May be nullptr; must outlive the call.
  const HttpBody* long_body = nullptr;
};

struct HttpAnswer {
  int code = 0;  // the last status, 200..599
  std::string body = {};
  // In the order of arrival, with names in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};

  // The value of the first header `name`, which is given in lower case. Empty: there is none.
  std::string_view Header(std::string_view name) const;
};

// kInvalidArgument: the URL is no http:// or https:// URL with a host; or it has control
// characters, spaces or backslashes; or it has a user and password, which logs would show.
absl::Status CheckHttpUrl(std::string_view url);

// The part of a URL for logs, as "https://hooks.example:8443": paths and queries often carry
// secrets. The URL is one that CheckHttpUrl() accepts.
std::string HttpOrigin(std::string_view url);

// kFailedPrecondition: there is no libcurl on this machine; the message names the package.
absl::Status CheckCurlLibrary();

// Makes the call. Follows no redirect, and always checks certificates. Uses the proxy that
// http_proxy, https_proxy and no_proxy of the environment name; but no proxy for http:// URLs of
// this machine (127.0.0.0/8, ::1, localhost). Thread-safe; blocks up to `timeout`. Messages show
// only the origin of the URL.
//
// Errors: kInvalidArgument     the URL, or a header has a control character.
//         kFailedPrecondition  there is no libcurl.
//         kUnavailable         no connection, or it broke.
//         kUnauthenticated     the server's certificate is not trusted.
//         kDeadlineExceeded    a deadline passed.
//         kResourceExhausted   the answer has more than `max_answer_bytes`.
//         kCancelled           `cancel` was set.
//         those of HttpBody::read.
absl::StatusOr<HttpAnswer> CallHttp(const HttpRequest& request);

// Makes calls over connections that stay open between them. Thread-safe; keeps as many connections
// as there were calls at once, and at most 32.
class HttpClient {
 public:
  HttpClient() = default;
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;

  // As CallHttp().
  absl::StatusOr<HttpAnswer> Call(const HttpRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::vector<void*> idle_ ABSL_GUARDED_BY(mutex_);  // handles of libcurl
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CURL_LIBRARY_H_
