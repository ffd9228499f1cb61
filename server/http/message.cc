#include "server/http/message.h"

#include "base/strings.h"
#include "nlohmann/json.hpp"

namespace h5mirror::server {

int ErrorCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kOutOfRange:
      return 410;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpAnswer ErrorAnswer(const absl::Status& status) {
  return ErrorAnswer(ErrorCodeOf(status), status);
}

HttpAnswer ErrorAnswer(int code, const absl::Status& status) {
  HttpAnswer answer;
  answer.status = code;
  const nlohmann::json body = {
      {"error",
       {{"code", absl::StatusCodeToString(status.code())}, {"message", ToStd(status.message())}}}};
  // Bytes of a name that are no UTF-8 are replaced.
  answer.text = body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  answer.headers.emplace_back("Content-Type", "application/json");
  answer.headers.emplace_back("Cache-Control", "no-store");
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (code == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"h5mirror\"");
  if (code == 429 || code == 503) answer.headers.emplace_back("Retry-After", "1");
  // A client that guesses tokens, or goes on beyond a limit, pays with a connection for each try.
  answer.is_last = code == 401 || code == 429;
  return answer;
}

}  // namespace h5mirror::server
