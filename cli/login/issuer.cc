#include "cli/login/issuer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/curl_library.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "rpc/server_address.h"

namespace h5mirror::tools {
namespace {

using nlohmann::json;

constexpr absl::Duration kCallTimeout = absl::Seconds(30);
constexpr absl::Duration kIntervalDefault = absl::Seconds(5);  // RFC 8628, 3.2
constexpr absl::Duration kSlowDown = absl::Seconds(5);         // RFC 8628, 3.5
constexpr absl::Duration kIntervalMax = absl::Minutes(1);
constexpr absl::Duration kCodeLifetimeMax = absl::Minutes(30);
constexpr size_t kWordsShownMax = 200;
constexpr char kDeviceGrant[] = "urn:ietf:params:oauth:grant-type:device_code";

std::string UrlEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", byte);
    }
  }
  return encoded;
}

// "host" of "http://host:80" or "http://[::1]:80".
std::string HostOf(std::string_view url) {
  std::string origin = HttpOrigin(url);
  origin.erase(0, origin.find("://") + 3);
  if (origin.starts_with('[')) return origin.substr(1, origin.find(']') - 1);
  return origin.substr(0, origin.find(':'));
}

// A token that goes over http can be read on the way.
absl::Status CheckUrl(std::string_view url) {
  H5M_RETURN_IF_ERROR(CheckHttpUrl(url));
  const bool is_secret = absl::StartsWithIgnoreCase(ToAbsl(url), "https://");
  if (is_secret || rpc::IsLoopback(HostOf(url))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(HttpOrigin(url), ": tokens go over https only, but for loopback addresses"));
}

std::string Text(const json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

std::optional<absl::Duration> Seconds(const json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_number()) return std::nullopt;
  const double seconds = member->get<double>();
  if (!(seconds > 0 && seconds < 1e9)) return std::nullopt;
  return absl::Seconds(seconds);
}

absl::Status NotAgreed(std::string_view url, std::string_view what) {
  return absl::FailedPreconditionError(StrCat(HttpOrigin(url), ": ", what));
}

// One with a refresh token alone counts too: the issuer may take the former one no more.
absl::StatusOr<IssuedTokens> TokensOf(const json& body, std::string_view url) {
  IssuedTokens tokens{.access_token = Text(body, "access_token"),
                      .id_token = Text(body, "id_token"),
                      .refresh_token = Text(body, "refresh_token"),
                      .lifetime = Seconds(body, "expires_in")};
  if (tokens.access_token.empty() && tokens.refresh_token.empty()) {
    return NotAgreed(url, "its answer has no access_token");
  }
  return tokens;
}

}  // namespace

struct Issuer::Answer {
  json body;                     // an object
  std::string error = {};        // of OAuth, "authorization_pending"; empty: none
  std::string explanation = {};  // for people

  absl::Status Refusal(std::string_view url) const {
    return absl::UnauthenticatedError(
        StrCat(HttpOrigin(url), ": ", Printable(std::string_view(error).substr(0, kWordsShownMax)),
               explanation.empty() ? "" : ": ",
               Printable(std::string_view(explanation).substr(0, kWordsShownMax))));
  }
};

absl::StatusOr<IssuerEndpoints> Issuer::Discover() const {
  H5M_RETURN_IF_ERROR(CheckUrl(url_));
  const std::string base = url_.ends_with('/') ? url_.substr(0, url_.size() - 1) : url_;
  H5M_ASSIGN_OR_RETURN(const HttpAnswer answer,
                       CallHttp({.method = HttpMethod::kGet,
                                 .url = base + "/.well-known/openid-configuration",
                                 .headers = {"Accept: application/json"},
                                 .timeout = kCallTimeout,
                                 .ca_file = ca_file_}));
  const json body = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (answer.code != 200 || !body.is_object()) {
    return NotAgreed(url_, StrCat("has no openid-configuration (HTTP ", answer.code,
                                  "): check the issuer's URL"));
  }
  if (Text(body, "issuer") != url_) {
    return NotAgreed(url_, StrCat("calls itself ",
                                  Quoted(Printable(Text(body, "issuer").substr(0, kWordsShownMax))),
                                  ": give that as the issuer, if it is the one you mean"));
  }
  IssuerEndpoints endpoints{.token = Text(body, "token_endpoint"),
                            .device = Text(body, "device_authorization_endpoint")};
  H5M_RETURN_IF_ERROR(CheckUrl(endpoints.token));
  if (!endpoints.device.empty()) H5M_RETURN_IF_ERROR(CheckUrl(endpoints.device));
  return endpoints;
}

absl::StatusOr<Issuer::Answer> Issuer::Post(const std::string& url, const Fields& fields) const {
  H5M_RETURN_IF_ERROR(CheckUrl(url));
  std::string form;
  for (const auto& [name, value] : fields) {
    StrAppend(&form, form.empty() ? "" : "&", name, "=", UrlEncode(value));
  }
  H5M_ASSIGN_OR_RETURN(const HttpAnswer http,
                       CallHttp({.method = HttpMethod::kPost,
                                 .url = url,
                                 .headers = {"Accept: application/json",
                                             "Content-Type: application/x-www-form-urlencoded"},
                                 .body = form,
                                 .timeout = kCallTimeout,
                                 .ca_file = ca_file_}));
  if (http.code >= 500 || http.code == 429) {
    return absl::UnavailableError(StrCat(HttpOrigin(url), ": HTTP ", http.code));
  }
  Answer answer{.body = json::parse(http.body, nullptr, /*allow_exceptions=*/false)};
  if (!answer.body.is_object()) {
    return NotAgreed(url, StrCat("HTTP ", http.code, " with an answer that is no JSON object"));
  }
  answer.error = Text(answer.body, "error");
  answer.explanation = Text(answer.body, "error_description");
  if (http.code != 200 && answer.error.empty()) return NotAgreed(url, StrCat("HTTP ", http.code));
  return answer;
}

absl::StatusOr<IssuedTokens> Issuer::LogInByDevice(
    const IssuerEndpoints& endpoints, const std::string& client_id, const std::string& scope,
    const std::function<void(const DeviceCode&)>& show,
    const std::function<bool(absl::Duration)>& wait) const {
  if (endpoints.device.empty()) {
    return NotAgreed(url_, "has no device flow: use --token-command or --token-file");
  }
  H5M_ASSIGN_OR_RETURN(const Answer begun,
                       Post(endpoints.device, {{"client_id", client_id}, {"scope", scope}}));
  if (!begun.error.empty()) return begun.Refusal(endpoints.device);
  const std::string device_code = Text(begun.body, "device_code");
  const DeviceCode code{.code = Text(begun.body, "user_code"),
                        .url = Text(begun.body, "verification_uri"),
                        .complete_url = Text(begun.body, "verification_uri_complete")};
  if (device_code.empty() || code.code.empty() || code.url.empty()) {
    return NotAgreed(endpoints.device, "its answer has no code, or no URL to type it at");
  }
  absl::Duration interval = Seconds(begun.body, "interval").value_or(kIntervalDefault);
  const absl::Time deadline =
      absl::Now() +
      std::min(Seconds(begun.body, "expires_in").value_or(kCodeLifetimeMax), kCodeLifetimeMax);
  show(code);
  while (absl::Now() < deadline) {
    interval = std::min(interval, kIntervalMax);
    if (!wait(interval)) return absl::CancelledError("the login was broken off");
    const absl::StatusOr<Answer> answer = Post(
        endpoints.token,
        {{"grant_type", kDeviceGrant}, {"device_code", device_code}, {"client_id", client_id}});
    if (absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status())) {
      interval *= 2;  // RFC 8628, 3.5: a connection that fails is asked less often.
      continue;
    }
    H5M_RETURN_IF_ERROR(answer.status());
    if (answer->error.empty()) return TokensOf(answer->body, endpoints.token);
    if (answer->error == "slow_down") interval += kSlowDown;
    if (answer->error == "expired_token") break;
    if (answer->error != "authorization_pending" && answer->error != "slow_down") {
      return answer->Refusal(endpoints.token);
    }
  }
  return absl::DeadlineExceededError("the code has expired: run `h5mirror login` again");
}

absl::StatusOr<IssuedTokens> Issuer::Refresh(const std::string& token_endpoint,
                                             const std::string& client_id,
                                             const std::string& refresh_token) const {
  H5M_ASSIGN_OR_RETURN(const Answer answer, Post(token_endpoint, {{"grant_type", "refresh_token"},
                                                                  {"refresh_token", refresh_token},
                                                                  {"client_id", client_id}}));
  if (!answer.error.empty()) return answer.Refusal(token_endpoint);
  return TokensOf(answer.body, token_endpoint);
}

std::optional<absl::Time> ExpiryOf(std::string_view token) {
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  std::string claims;
  if (second == std::string_view::npos ||
      !absl::WebSafeBase64Unescape(ToAbsl(token.substr(first + 1, second - first - 1)), &claims)) {
    return std::nullopt;
  }
  const json object = json::parse(claims, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("exp") || !object["exp"].is_number()) {
    return std::nullopt;
  }
  const double seconds = object["exp"].get<double>();
  if (!(seconds >= 0 && seconds < 1e11)) return std::nullopt;
  return absl::FromUnixSeconds(static_cast<int64_t>(std::floor(seconds)));
}

}  // namespace h5mirror::tools
