#include "base/curl_library.h"

#include <arpa/inet.h>
// Every libcurl 4 knows the old option CURLOPT_PROTOCOLS; its successor came with 7.85.
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/write_signals.h"

// The macros check types only where a program calls the functions by name.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace h5mirror {
namespace {

// The functions of libcurl that we call.
struct Curl {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, Curl& curl) {
  return Find(library, "curl_global_init", curl.global_init) &&
         Find(library, "curl_easy_init", curl.easy_init) &&
         Find(library, "curl_easy_reset", curl.easy_reset) &&
         Find(library, "curl_easy_setopt", curl.easy_setopt) &&
         Find(library, "curl_easy_perform", curl.easy_perform) &&
         Find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
         Find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
         Find(library, "curl_easy_strerror", curl.easy_strerror) &&
         Find(library, "curl_slist_append", curl.slist_append) &&
         Find(library, "curl_slist_free_all", curl.slist_free_all);
}

// Both libraries have the same functions. A loaded library stays loaded.
const Curl* Load() {
  static Curl curl;
  for (const char* const name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || !FindAll(library, curl)) continue;
    if (curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return &curl;
  }
  return nullptr;
}

absl::StatusOr<const Curl*> Library() {
  static const Curl* const curl = Load();
  if (curl != nullptr) return curl;
  return absl::FailedPreconditionError(
      "HTTP calls need libcurl.so.4, which is not there: apt install libcurl4");
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

size_t SchemeSize(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (absl::StartsWithIgnoreCase(ToAbsl(url), ToAbsl(scheme))) return scheme.size();
  }
  return 0;
}

// "host:port" behind the scheme, with a user before it if there is one.
std::string_view Authority(std::string_view url) {
  url.remove_prefix(SchemeSize(url));
  return url.substr(0, url.find_first_of("/?#"));
}

// Host of an http:// URL: this machine.
bool IsPlainLoopback(std::string_view url) {
  if (!absl::StartsWithIgnoreCase(ToAbsl(url), "http://")) return false;
  std::string_view host = Authority(url);
  if (host.starts_with('[')) {
    const std::string inner(host.substr(1, host.find(']') - 1));
    in6_addr v6{};
    return inet_pton(AF_INET6, inner.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
  }
  host = host.substr(0, host.find(':'));
  in_addr v4{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  return absl::EqualsIgnoreCase(ToAbsl(host), "localhost");
}

absl::Status CheckHeaders(const std::vector<std::string>& headers) {
  for (const std::string& header : headers) {
    if (std::any_of(header.begin(), header.end(), IsControl)) {
      return absl::InvalidArgumentError("a header has a control character");
    }
  }
  return absl::OkStatus();
}

constexpr size_t kHeadersMax = 200;  // of an answer; more are left out
constexpr size_t kIdleMax = 32;

struct Answer {
  HttpAnswer http;
  size_t max_bytes = 0;
  bool is_too_large = false;
};

size_t TakeBytes(char* data, size_t size, size_t count, void* context) {
  auto* answer = static_cast<Answer*>(context);
  const size_t bytes = size * count;
  if (bytes > answer->max_bytes - answer->http.body.size()) {
    answer->is_too_large = true;
    return 0;
  }
  answer->http.body.append(data, bytes);
  return bytes;
}

// Takes one header line. Other answers may come before the final one, as "100 Continue".
size_t TakeHeader(char* data, size_t size, size_t count, void* context) {
  auto& headers = static_cast<Answer*>(context)->http.headers;
  const std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) {
    headers.clear();
  } else if (colon != std::string_view::npos && headers.size() < kHeadersMax) {
    headers.emplace_back(absl::AsciiStrToLower(ToAbsl(line.substr(0, colon))),
                         std::string(absl::StripAsciiWhitespace(ToAbsl(line.substr(colon + 1)))));
  }
  return size * count;
}

// A body that is being sent.
struct Sending {
  const HttpBody* body = nullptr;
  uint64_t offset = 0;
  absl::Status status;  // of a call of HttpBody::read
};

size_t GiveBytes(char* data, size_t size, size_t count, void* context) {
  auto* sending = static_cast<Sending*>(context);
  const uint64_t left = sending->body->size_bytes - sending->offset;
  const auto bytes = static_cast<size_t>(std::min<uint64_t>(size * count, left));
  if (bytes == 0) return 0;
  sending->status = sending->body->read(sending->offset, {data, bytes});
  if (!sending->status.ok()) return CURL_READFUNC_ABORT;
  sending->offset += bytes;
  return bytes;
}

// A kept connection may turn out to be closed: then libcurl sends the body from its start again.
int SeekBody(void* context, curl_off_t offset, int origin) {
  auto* sending = static_cast<Sending*>(context);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<uint64_t>(offset) > sending->body->size_bytes) {
    return CURL_SEEKFUNC_FAIL;
  }
  sending->offset = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int StopIfCancelled(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* cancel = static_cast<const std::atomic<bool>*>(context);
  return cancel != nullptr && cancel->load() ? 1 : 0;
}

// One call in the making: a handle of libcurl with its headers.
class Call {
 public:
  // The caller owns `handle`, which is as new but for its connections.
  Call(const Curl& curl, CURL* handle, const HttpRequest& request)
      : curl_(curl), request_(request), handle_(handle) {
    sending_.body = request.long_body;
  }
  ~Call() { curl_.slist_free_all(headers_); }
  Call(const Call&) = delete;

  absl::StatusOr<HttpAnswer> Run();

 private:
  template <typename Value>
  bool Set(CURLoption option, Value value) {
    return curl_.easy_setopt(handle_, option, value) == CURLE_OK;
  }
  bool AddHeader(const char* header);
  bool SetHeaders();
  bool SetBody();
  bool SetLongBody();
  bool SetLimits();
  bool SetTrust();
  bool SetProxy();
  bool SetAll();
  absl::Status ErrorOf(CURLcode code) const;

  const Curl& curl_;
  const HttpRequest& request_;
  CURL* const handle_;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> reason_{};  // in libcurl's words; may stay empty
  Answer answer_;
  Sending sending_;
};

bool Call::AddHeader(const char* header) {
  curl_slist* const longer = curl_.slist_append(headers_, header);
  if (longer != nullptr) headers_ = longer;
  return longer != nullptr;
}

bool Call::SetHeaders() {
  if (!AddHeader("Expect:")) return false;  // no wait for "100 Continue"
  for (const std::string& header : request_.headers) {
    if (!AddHeader(header.c_str())) return false;
  }
  return Set(CURLOPT_HTTPHEADER, headers_);
}

bool Call::SetBody() {
  switch (request_.method) {
    case HttpMethod::kGet:
      return Set(CURLOPT_HTTPGET, 1L);
    case HttpMethod::kHead:
      return Set(CURLOPT_NOBODY, 1L);
    case HttpMethod::kDelete:
      return Set(CURLOPT_CUSTOMREQUEST, "DELETE");
    case HttpMethod::kPut:
      if (request_.long_body != nullptr) return SetLongBody();
      if (!Set(CURLOPT_CUSTOMREQUEST, "PUT")) return false;
      break;
    case HttpMethod::kPost:
      break;
  }
  return Set(CURLOPT_POST, 1L) && Set(CURLOPT_POSTFIELDS, request_.body.data()) &&
         Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
}

bool Call::SetLongBody() {
  return Set(CURLOPT_UPLOAD, 1L) &&
         Set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.long_body->size_bytes)) &&
         Set(CURLOPT_READFUNCTION, GiveBytes) && Set(CURLOPT_READDATA, &sending_) &&
         Set(CURLOPT_SEEKFUNCTION, SeekBody) && Set(CURLOPT_SEEKDATA, &sending_);
}

bool Call::SetLimits() {
  // 0 would mean no limit.
  const auto ms = [](absl::Duration time) {
    return static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(time)));
  };
#if LIBCURL_VERSION_NUM >= 0x075700
  // Else libcurl would wait for a silent name server after the deadline. An older libcurl refuses
  // the option.
  Set(CURLOPT_QUICK_EXIT, 1L);
#endif
  return Set(CURLOPT_NOSIGNAL, 1L) &&
         Set(CURLOPT_CONNECTTIMEOUT_MS, ms(request_.connect_timeout)) &&
         Set(CURLOPT_TIMEOUT_MS, ms(request_.timeout)) && Set(CURLOPT_NOPROGRESS, 0L) &&
         Set(CURLOPT_XFERINFOFUNCTION, StopIfCancelled) &&
         Set(CURLOPT_XFERINFODATA, static_cast<const void*>(request_.cancel)) &&
         Set(CURLOPT_WRITEFUNCTION, TakeBytes) && Set(CURLOPT_WRITEDATA, &answer_) &&
         Set(CURLOPT_HEADERFUNCTION, TakeHeader) && Set(CURLOPT_HEADERDATA, &answer_);
}

bool Call::SetTrust() {
  return Set(CURLOPT_ERRORBUFFER, reason_.data()) &&
         Set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS)) &&
         Set(CURLOPT_FOLLOWLOCATION, 0L) && Set(CURLOPT_SSL_VERIFYPEER, 1L) &&
         Set(CURLOPT_SSL_VERIFYHOST, 2L) &&
         (request_.ca_file.empty() || Set(CURLOPT_CAINFO, request_.ca_file.c_str()));
}

// A plain-text call to this machine does not leave this machine.
bool Call::SetProxy() { return !IsPlainLoopback(request_.url) || Set(CURLOPT_NOPROXY, "*"); }

bool Call::SetAll() {
  return Set(CURLOPT_URL, request_.url.c_str()) && Set(CURLOPT_USERAGENT, "h5mirror") &&
         SetHeaders() && SetBody() && SetLimits() && SetTrust() && SetProxy();
}

absl::Status Call::ErrorOf(CURLcode code) const {
  const std::string what = StrCat(HttpOrigin(request_.url), ": ", curl_.easy_strerror(code));
  if (answer_.is_too_large) {
    return absl::ResourceExhaustedError(StrCat(
        HttpOrigin(request_.url), ": the answer has more than ", answer_.max_bytes, " bytes"));
  }
  if (!sending_.status.ok()) return sending_.status;
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(what);
    case CURLE_ABORTED_BY_CALLBACK:
      return absl::CancelledError(what);
    case CURLE_PEER_FAILED_VERIFICATION:
      // The reason says whether the name or the authority is wrong.
      return absl::UnauthenticatedError(
          StrCat(what, reason_[0] != 0 ? ": " : "", std::string_view(reason_.data())));
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::UnauthenticatedError(what);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::InvalidArgumentError(what);
    default:
      return absl::UnavailableError(what);
  }
}

absl::StatusOr<HttpAnswer> Call::Run() {
  answer_.max_bytes = request_.max_answer_bytes;
  if (!SetAll()) {
    return absl::UnavailableError(
        StrCat(HttpOrigin(request_.url), ": libcurl does not take the call"));
  }
  if (const CURLcode code = curl_.easy_perform(handle_); code != CURLE_OK) return ErrorOf(code);
  long status = 0;
  curl_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  answer_.http.code = static_cast<int>(status);
  return std::move(answer_.http);
}

absl::Status CheckRequest(const HttpRequest& request) {
  if (const absl::Status status = CheckHttpUrl(request.url); !status.ok()) {
    return absl::InvalidArgumentError(StrCat("the URL ", ToStd(status.message())));
  }
  return CheckHeaders(request.headers);
}

}  // namespace

absl::Status CheckHttpUrl(std::string_view url) {
  const std::string_view authority = Authority(url);
  std::string_view wrong;
  if (SchemeSize(url) == 0) {
    wrong = "must begin with https:// or http://";
  } else if (std::any_of(url.begin(), url.end(), [](char c) { return IsControl(c) || c == ' '; })) {
    wrong = "has a space or a control character";
  } else if (url.find('\\') != std::string_view::npos) {
    wrong = "has a backslash, which programs read in different ways";
  } else if (authority.find('@') != std::string_view::npos) {
    wrong = "has a user or a password, which logs would show";
  } else if (authority.empty() || authority.front() == ':') {
    wrong = "names no host";
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(ToAbsl(wrong));
}

std::string HttpOrigin(std::string_view url) {
  const std::string_view authority = Authority(url);
  return StrCat(url.substr(0, SchemeSize(url)), authority.substr(authority.rfind('@') + 1));
}

absl::Status CheckCurlLibrary() { return Library().status(); }

std::string_view HttpAnswer::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

absl::StatusOr<HttpAnswer> CallHttp(const HttpRequest& request) {
  HttpClient client;
  return client.Call(request);
}

HttpClient::~HttpClient() {
  const absl::MutexLock lock(&mutex_);
  if (idle_.empty()) return;
  const WriteSignalBlock no_pipe_signal;  // At the close TLS writes to the socket.
  for (void* const handle : idle_) (*Library())->easy_cleanup(handle);
}

absl::StatusOr<HttpAnswer> HttpClient::Call(const HttpRequest& request) {
  H5M_RETURN_IF_ERROR(CheckRequest(request));
  H5M_ASSIGN_OR_RETURN(const Curl* const curl, Library());
  // TLS libraries write without MSG_NOSIGNAL.
  const WriteSignalBlock no_pipe_signal;
  CURL* handle = nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      handle = idle_.back();
      idle_.pop_back();
    }
  }
  if (handle == nullptr) handle = curl->easy_init();
  if (handle == nullptr) return absl::UnavailableError("libcurl does not take the call");
  absl::StatusOr<HttpAnswer> answer = h5mirror::Call(*curl, handle, request).Run();
  curl->easy_reset(handle);  // Its connections stay open.
  const absl::MutexLock lock(&mutex_);
  if (idle_.size() < kIdleMax) {
    idle_.push_back(handle);
  } else {
    curl->easy_cleanup(handle);
  }
  return answer;
}

}  // namespace h5mirror
