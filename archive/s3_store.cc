#include "archive/s3_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "archive/s3_answers.h"
#include "archive/sha256.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kErrorBytesMax = 64 << 10;
// A put may take longer than other calls, by the time that its bytes take at this pace.
constexpr uint64_t kSlowestBytesPerSecond = 1 << 20;
constexpr char kSkewed[] = "RequestTimeTooSkewed";
// The limit of Amazon's service.
constexpr absl::Duration kSkewMax = absl::Minutes(15);

std::string EndpointOf(S3Settings& settings) {
  if (settings.endpoint.empty()) {
    settings.endpoint = StrCat("https://s3.", settings.region, ".amazonaws.com");
  }
  return settings.endpoint;
}

// The header Host, as libcurl sends it: without a port that is the scheme's own.
std::string HostOf(std::string_view endpoint) {
  std::string_view host = endpoint.substr(endpoint.find("//") + 2);
  const std::string_view own = endpoint.starts_with("https:") ? ":443" : ":80";
  if (host.ends_with(own)) host.remove_suffix(own.size());
  return std::string(host);
}

const char* NameOf(HttpMethod method) {
  switch (method) {
    case HttpMethod::kPut:
      return "PUT";
    case HttpMethod::kHead:
      return "HEAD";
    case HttpMethod::kDelete:
      return "DELETE";
    case HttpMethod::kPost:
      return "POST";
    case HttpMethod::kGet:
      break;
  }
  return "GET";
}

absl::StatusOr<std::string> Sha256Of(store::ObjectSource& source) {
  Sha256 sha;
  std::string piece;
  for (uint64_t at = 0; at < source.size_bytes(); at += piece.size()) {
    piece.resize(std::min<uint64_t>(kPieceBytes, source.size_bytes() - at));
    H5M_RETURN_IF_ERROR(source.Read(at, absl::MakeSpan(piece)));
    sha.Update(piece);
  }
  return sha.HexDigest();
}

// The bytes of an object, from "bytes 0-9/4711"; 0: unknown.
uint64_t TotalOf(std::string_view content_range) {
  uint64_t total = 0;
  const size_t slash = content_range.rfind('/');
  if (slash == std::string_view::npos) return 0;
  return absl::SimpleAtoi(ToAbsl(content_range.substr(slash + 1)), &total) ? total : 0;
}

// Fills `out` from an answer to a get of the bytes from `offset` on.
absl::Status TakeRange(const HttpAnswer& answer, uint64_t offset, absl::Span<char> out,
                       std::string_view what) {
  // 200: the service has sent all of it.
  const bool is_whole = answer.code == 200;
  const uint64_t begin = is_whole ? 0 : offset;
  const uint64_t total = is_whole ? answer.body.size() : TotalOf(answer.Header("content-range"));
  const uint64_t end = offset + out.size();
  if (begin + answer.body.size() >= end) {
    std::copy_n(answer.body.begin() + static_cast<std::ptrdiff_t>(offset - begin), out.size(),
                out.begin());
    return absl::OkStatus();
  }
  if (is_whole || (total != 0 && total < end)) {
    return absl::DataLossError(StrCat(what, ": it ends before offset ", end));
  }
  return absl::UnavailableError(
      StrCat(what, ": ", answer.body.size(), " bytes came, ", out.size(), " were asked for"));
}

// The error for a service that has shown no trusted certificate.
absl::Status OfCertificate(const std::string& text, const std::string& ca_file) {
  return absl::UnauthenticatedError(
      StrCat(text, ca_file.empty()
                       ? "; if its authority is the site's own, name that one's certificate in the "
                         "archive's address: ca=FILE"
                       : StrCat("; the authority is that of ca=", ca_file)));
}

// How far this machine's clock is ahead of the service's. `date`: the service's header Date.
// nullopt: unknown.
std::optional<absl::Duration> ClockAhead(std::string_view date) {
  absl::Time there;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", ToAbsl(date), &there, nullptr)) {
    return std::nullopt;
  }
  return absl::Now() - there;
}

// Whether the service refuses all signatures because this machine's clock is wrong.
bool IsSkewed(std::string_view date) {
  const auto ahead = ClockAhead(date);
  return ahead && absl::AbsDuration(*ahead) > kSkewMax;
}

// The difference of the clocks, for people. Empty: unknown.
std::string ClockDifference(std::string_view date) {
  const auto known = ClockAhead(date);
  if (!known) return "";
  const absl::Duration ahead = *known;
  return StrCat("; this machine's clock is ", HumanDuration(absl::AbsDuration(ahead)),
                ahead < absl::ZeroDuration() ? " behind" : " ahead of", " that of the service");
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3Store>> S3Store::Open(S3Settings settings, RetryPolicy policy,
                                                       RetryClock clock,
                                                       const std::atomic<bool>* cancel) {
  H5M_RETURN_IF_ERROR(CheckHttpUrl(EndpointOf(settings)));
  H5M_RETURN_IF_ERROR(CheckCurlLibrary());
  H5M_ASSIGN_OR_RETURN(S3Credentials credentials, LoadS3Credentials(settings.credentials_file));
  return std::unique_ptr<S3Store>(
      new S3Store(std::move(settings), policy, std::move(clock), std::move(credentials), cancel));
}

S3Store::S3Store(S3Settings settings, RetryPolicy policy, RetryClock clock,
                 S3Credentials credentials, const std::atomic<bool>* cancel)
    : settings_(std::move(settings)),
      policy_(policy),
      clock_(std::move(clock)),
      host_(HostOf(settings_.endpoint)),
      cancel_(cancel),
      credentials_(std::move(credentials)) {}

std::unique_ptr<S3Store> S3Store::Below(std::string_view part, const std::atomic<bool>* cancel) {
  S3Settings settings = settings_;
  if (!part.empty()) settings.prefix = KeyOf(part);
  return std::unique_ptr<S3Store>(
      new S3Store(std::move(settings), policy_, clock_, credentials(), cancel));
}

std::string S3Store::Describe() const {
  return StrCat("s3://", settings_.bucket, settings_.prefix.empty() ? "" : "/", settings_.prefix);
}

std::string S3Store::KeyOf(std::string_view name) const {
  return StrCat(settings_.prefix, settings_.prefix.empty() ? "" : "/", name);
}

S3Store::Call S3Store::CallOf(HttpMethod method, std::string_view verb,
                              std::string_view name) const {
  Call call;
  call.method = method;
  call.what = StrCat(verb, " ", name, " in ", Describe());
  call.path = StrCat("/", settings_.bucket, "/", KeyOf(name));
  return call;
}

S3Credentials S3Store::credentials() {
  const absl::MutexLock lock(&mutex_);
  return credentials_;
}

bool S3Store::HasNewCredentials() {
  if (settings_.credentials_file.empty()) return false;
  auto loaded = LoadS3Credentials(settings_.credentials_file);
  const absl::MutexLock lock(&mutex_);
  if (!loaded.ok() || *loaded == credentials_) return false;
  credentials_ = *std::move(loaded);
  return true;
}

absl::StatusOr<HttpAnswer> S3Store::TryOnce(const Call& call, absl::Duration timeout) {
  S3Request signed_request;
  signed_request.method = NameOf(call.method);
  signed_request.host = host_;
  signed_request.path = call.path;
  signed_request.query = call.query;
  signed_request.headers = call.headers;
  signed_request.body_sha256 = call.body_sha256;
  HttpRequest request;
  request.method = call.method;
  request.url = StrCat(settings_.endpoint, TargetOf(signed_request));
  request.headers = SignedHeaders(signed_request, credentials(), settings_.region, absl::Now());
  if (call.body != nullptr) request.headers.emplace_back("Content-Type: application/octet-stream");
  request.long_body = call.body;
  request.connect_timeout = std::min(request.connect_timeout, timeout);
  request.timeout = timeout;
  request.max_answer_bytes = call.max_answer_bytes;
  request.ca_file = settings_.ca_file;
  request.cancel = cancel_;
  if (cancel_ != nullptr && *cancel_) return absl::CancelledError(call.what);
  absl::StatusOr<HttpAnswer> answer = client_.Call(request);
  if (!answer.ok()) {
    // An answer that is too long does not mean that the archive is full.
    const bool is_long = absl::IsResourceExhausted(answer.status());
    const std::string text = StrCat(call.what, ": ", ToStd(answer.status().message()));
    if (absl::IsUnauthenticated(answer.status())) return OfCertificate(text, settings_.ca_file);
    return absl::Status(is_long ? absl::StatusCode::kFailedPrecondition : answer.status().code(),
                        text);
  }
  if (answer->code >= 200 && answer->code < 300) return answer;
  return Explained(StatusOfAnswer(answer->code, answer->body, call.what), answer->Header("date"));
}

absl::Status S3Store::Explained(const absl::Status& refused, std::string_view date) const {
  std::string more;
  if (absl::IsUnauthenticated(refused) || absl::IsPermissionDenied(refused)) {
    more = settings_.credentials_file.empty()
               ? "; the keys are those of AWS_ACCESS_KEY_ID in the environment"
               : StrCat("; the keys are those of ", settings_.credentials_file);
    // The answer to a HEAD has no body that would say so.
    if (IsSkewed(date)) more += ClockDifference(date);
  } else if (absl::StrContains(refused.message(), kSkewed)) {
    more = ClockDifference(date);
  }
  return absl::Status(refused.code(), StrCat(ToStd(refused.message()), more));
}

absl::StatusOr<HttpAnswer> S3Store::RunWith(const RetryPolicy& policy, const Call& call,
                                            absl::Duration timeout) {
  HttpAnswer answer;
  const absl::Status status = Retry(policy, clock_, timeout, [&](absl::Duration time) {
    auto tried = TryOnce(call, time);
    const bool is_refused =
        absl::IsUnauthenticated(tried.status()) || absl::IsPermissionDenied(tried.status());
    if (is_refused && HasNewCredentials()) tried = TryOnce(call, time);
    if (tried.ok()) answer = *std::move(tried);
    return tried.status();
  });
  if (!status.ok()) return status;
  return answer;
}

absl::StatusOr<HttpAnswer> S3Store::Run(const Call& call, absl::Duration timeout) {
  return RunWith(policy_, call, timeout);
}

absl::Status S3Store::Put(std::string_view name, store::ObjectSource& source,
                          absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  HttpBody body;
  body.size_bytes = source.size_bytes();
  body.read = [&](uint64_t offset, absl::Span<char> out) { return source.Read(offset, out); };
  Call call = CallOf(HttpMethod::kPut, "put", name);
  H5M_ASSIGN_OR_RETURN(call.body_sha256, Sha256Of(source));
  call.body = &body;
  RetryPolicy policy = policy_;
  policy.try_timeout += absl::Seconds(body.size_bytes / kSlowestBytesPerSecond);
  return PutOnly(std::move(call), policy, timeout);
}

absl::Status S3Store::PutOnly(Call call, const RetryPolicy& policy, absl::Duration timeout) {
  if (!lacks_conditions_) {
    call.headers["if-none-match"] = "*";
    const absl::Status put = RunWith(policy, call, timeout).status();
    if (!absl::IsUnimplemented(put)) return put;
    lacks_conditions_ = true;
    call.headers.clear();
  }
  Call head = call;
  head.method = HttpMethod::kHead;
  head.body = nullptr;
  head.body_sha256 = kEmptySha256;
  const absl::Status there = Run(head, timeout).status();
  if (there.ok()) return absl::AlreadyExistsError(StrCat(call.what, ": there is one already"));
  if (!absl::IsNotFound(there)) return there;
  return RunWith(policy, call, timeout).status();
}

absl::Status S3Store::Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                          absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  Call call = CallOf(HttpMethod::kGet, "get", name);
  call.headers["range"] = StrCat("bytes=", offset, "-", offset + out.size() - 1);
  call.max_answer_bytes = std::max(out.size(), kErrorBytesMax);
  // A range that came short is requested again, like a call whose connection broke.
  return Retry(policy_, clock_, timeout, [&](absl::Duration time) -> absl::Status {
    RetryPolicy once = policy_;
    once.tries_max = 1;
    H5M_ASSIGN_OR_RETURN(const HttpAnswer answer, RunWith(once, call, time));
    return TakeRange(answer, offset, out, call.what);
  });
}

absl::StatusOr<store::ObjectInfo> S3Store::Head(std::string_view name, absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  const Call call = CallOf(HttpMethod::kHead, "look at", name);
  H5M_ASSIGN_OR_RETURN(const HttpAnswer answer, Run(call, timeout));
  store::ObjectInfo info{std::string(name), 0};
  if (absl::SimpleAtoi(ToAbsl(answer.Header("content-length")), &info.size_bytes)) return info;
  return absl::FailedPreconditionError(StrCat(call.what, ": the answer has no length"));
}

absl::StatusOr<store::ObjectPage> S3Store::List(std::string_view prefix, std::string_view next,
                                                size_t limit, absl::Duration timeout) {
  Call call = CallOf(HttpMethod::kGet, "list", prefix);
  call.path = StrCat("/", settings_.bucket);
  call.query = {{"list-type", "2"},
                {"max-keys", StrCat(std::clamp<size_t>(limit, 1, store::kObjectListMax))},
                {"prefix", KeyOf(prefix)}};
  if (!next.empty()) call.query["continuation-token"] = std::string(next);
  H5M_ASSIGN_OR_RETURN(const HttpAnswer answer, Run(call, timeout));
  auto page = ParseS3List(answer.body);
  if (!page.ok()) {
    return absl::FailedPreconditionError(StrCat(call.what, ": ", ToStd(page.status().message())));
  }
  const size_t skip = KeyOf("").size();
  for (store::ObjectInfo& object : page->objects) {
    object.name.erase(0, std::min(skip, object.name.size()));
  }
  return page;
}

absl::Status S3Store::Delete(std::string_view name, absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  const absl::Status deleted = Run(CallOf(HttpMethod::kDelete, "delete", name), timeout).status();
  return absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
}

}  // namespace h5mirror::archive
