#include "cli/verbs/doctor_http.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "base/curl_library.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "cli/output/json.h"
#include "cli/process/io.h"

namespace h5mirror::tools {
namespace {

constexpr char kName[] = "http";
constexpr absl::Duration kAnswerTime = absl::Seconds(10);
constexpr size_t kVersionShownMax = 40;

bool IsSecret(const std::string& url) {
  return absl::StartsWithIgnoreCase(ToAbsl(url), "https://");
}

// Libcurl takes the authorities as a file. This one is in memory, and ends with the descriptor.
absl::StatusOr<OwnedFd> FileWith(const std::string& text) {
  OwnedFd file(memfd_create("ca.pem", MFD_CLOEXEC));
  if (file.get() < 0) return ErrnoToStatus(errno, "make a file in memory");
  H5M_RETURN_IF_ERROR(PwriteAll(file.get(), 0, text, "ca.pem"));
  return file;
}

absl::StatusOr<HttpAnswer> Ask(std::string url, const std::string& ca_pem) {
  while (url.ends_with('/')) url.pop_back();
  HttpRequest request{.url = url + "/v1/openapi.json",
                      .headers = {"Accept: application/json"},
                      .connect_timeout = kAnswerTime,
                      .timeout = kAnswerTime};
  OwnedFd ca;
  if (IsSecret(url) && !ca_pem.empty()) {
    H5M_ASSIGN_OR_RETURN(ca, FileWith(ca_pem));
    request.ca_file = StrCat("/proc/self/fd/", ca.get());
  }
  return CallHttp(request);
}

std::string WayOutOf(const absl::Status& status, const std::string& url) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return "give the server's http_listen, as https://HOST:PORT";
    case absl::StatusCode::kUnauthenticated:
      return "use the host's name as its certificate has it, and name the CA that signs it with "
             "--ca";
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return StrCat(
          "set http_listen at the server, check host, port and firewall, and write ",
          IsSecret(url) ? "http:// if it has no tls_cert" : "https:// if it has tls_cert");
    default:
      return "";
  }
}

// The version of the interface; empty: another program has answered.
std::string VersionIn(const std::string& body) {
  const Json document = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("info") || !document["info"].is_object()) {
    return "";
  }
  const Json& info = document["info"];
  const auto text = [&](const char* name) {
    const auto member = info.find(name);
    return member != info.end() && member->is_string() ? member->get<std::string>() : "";
  };
  return text("title") == "h5mirror" ? text("version") : "";
}

}  // namespace

Check CheckHttpDoor(const std::string& url, const std::string& ca_pem) {
  const absl::StatusOr<HttpAnswer> answer = Ask(url, ca_pem);
  if (!answer.ok()) {
    return {Health::kFail, kName, std::string(answer.status().message()),
            WayOutOf(answer.status(), url)};
  }
  const std::string origin = HttpOrigin(url);
  const std::string version = answer->code == 200 ? VersionIn(answer->body) : "";
  if (version.empty()) {
    return {Health::kFail, kName,
            StrCat(origin, ": HTTP ", answer->code, ", and no answer of h5mirrord"),
            answer->code == 421
                ? "without tokens the server takes only localhost and loopback addresses"
                : "give the server's http_listen, with no path behind the port"};
  }
  return {Health::kOk, kName,
          StrCat(origin, ": version ", Printable(version.substr(0, kVersionShownMax)),
                 " of the HTTP interface, ",
                 IsSecret(url) ? "TLS with a certificate of this name" : "plain text"),
          ""};
}

}  // namespace h5mirror::tools
