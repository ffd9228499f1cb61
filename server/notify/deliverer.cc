#include "server/notify/deliverer.h"

#include <errno.h>
#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"
#include "base/curl_library.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/notify/run_command.h"
#include "server/notify/signature.h"
#include "server/settings/secret_file.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr size_t kSecretBytesMin = 16;
constexpr size_t kSaidBytesMax = 1000;
constexpr size_t kAnswerBytesMax = size_t{1} << 20;

// Answers by which a receiver says that this very body is wrong.
bool IsFinal(int code) { return code == 400 || code == 410 || code == 413 || code == 422; }

// The status of a try without an answer. Only an answer is final. A problem on this machine may be
// fixed in time, and then the events still arrive.
absl::Status NotFinal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? absl::UnavailableError(status.message()) : status;
}

class WebHook final : public Deliverer {
 public:
  WebHook(const NotifyRule& rule, std::string secret, std::string host)
      : url_(rule.url),
        ca_file_(rule.ca_file),
        secret_(std::move(secret)),
        host_(std::move(host)) {}

  absl::Status Deliver(const Event& event, const std::atomic<bool>& cancel) const override {
    HttpRequest request;
    request.method = HttpMethod::kPost;
    request.url = url_;
    request.body = ToJson(event, host_);
    request.headers = {"Content-Type: application/json",
                       StrCat("H5mirror-Event: ", EventName(event.kind))};
    if (!secret_.empty()) {
      request.headers.push_back(
          StrCat("H5mirror-Signature: ", SignatureOf(secret_, request.body, absl::Now())));
    }
    request.max_answer_bytes = kAnswerBytesMax;
    request.ca_file = ca_file_;
    request.cancel = &cancel;
    const absl::StatusOr<HttpAnswer> answer = CallHttp(request);
    if (!answer.ok()) return NotFinal(answer.status());
    if (answer->code >= 200 && answer->code < 300) return absl::OkStatus();
    const std::string what = StrCat(HttpOrigin(url_), ": answered with ", answer->code);
    return IsFinal(answer->code) ? absl::InvalidArgumentError(what) : absl::UnavailableError(what);
  }

 private:
  const std::string url_;
  const std::string ca_file_;
  const std::string secret_;
  const std::string host_;
};

// "exit code 1: no such channel". `output` is a stranger's.
std::string SaidBy(const CommandEnd& end) {
  std::string said = end.output.substr(0, kSaidBytesMax);
  while (said.ends_with('\n')) said.pop_back();
  return StrCat("exit code ", end.code, said.empty() ? "" : ": ", Printable(said));
}

absl::Status RunFor(const Event& event, CommandRequest request, const std::atomic<bool>& cancel) {
  request.environment = {StrCat("H5MIRROR_EVENT=", EventName(event.kind)),
                         StrCat("H5MIRROR_FILE=", event.file)};
  request.cancel = &cancel;
  const std::string program = request.command[0];
  const absl::StatusOr<CommandEnd> end = RunCommand(request);
  if (!end.ok()) return NotFinal(end.status());
  if (end->code != 0) return absl::UnavailableError(StrCat(program, ": ", SaidBy(*end)));
  if (!end->output.empty()) spdlog::info("notify: {}: {}", program, SaidBy(*end));
  return absl::OkStatus();
}

class Command final : public Deliverer {
 public:
  Command(std::vector<std::string> command, std::string host)
      : command_(std::move(command)), host_(std::move(host)) {}

  absl::Status Deliver(const Event& event, const std::atomic<bool>& cancel) const override {
    return RunFor(event, {.command = command_, .input = ToJson(event, host_) + "\n"}, cancel);
  }

 private:
  const std::vector<std::string> command_;
  const std::string host_;
};

class Mail final : public Deliverer {
 public:
  Mail(const NotifyRule& rule, std::string host) : rule_(rule), host_(std::move(host)) {}

  absl::Status Deliver(const Event& event, const std::atomic<bool>& cancel) const override {
    // -t: to those of the headers; -i: a line with a dot alone is no end.
    return RunFor(
        event,
        {.command = {rule_.sendmail.string(), "-t", "-i"}, .input = MailOf(rule_, event, host_)},
        cancel);
  }

 private:
  const NotifyRule rule_;
  const std::string host_;
};

absl::StatusOr<std::string> LoadSecret(const NotifyRule& rule) {
  if (rule.secret_file.empty()) return std::string();
  absl::StatusOr<std::string> secret = ReadSecretFile(rule.secret_file);
  absl::Status status = secret.status();
  if (status.ok() && secret->size() < kSecretBytesMin) {
    status = absl::InvalidArgumentError(StrCat(rule.secret_file.string(), " has fewer than ",
                                               kSecretBytesMin,
                                               " bytes: make one with `openssl rand -hex 32`"));
  }
  if (status.ok()) return secret;
  return absl::Status(status.code(),
                      StrCat(rule.source, ": [[notify]]: secret_file: ", ToStd(status.message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Deliverer>> MakeDeliverer(const NotifyRule& rule,
                                                               std::string host) {
  std::unique_ptr<const Deliverer> deliverer;
  switch (rule.kind()) {
    case ReceiverKind::kUrl: {
      H5M_ASSIGN_OR_RETURN(std::string secret, LoadSecret(rule));
      deliverer = std::make_unique<WebHook>(rule, std::move(secret), std::move(host));
      break;
    }
    case ReceiverKind::kCommand:
      deliverer = std::make_unique<Command>(rule.command, std::move(host));
      break;
    case ReceiverKind::kMail:
      deliverer = std::make_unique<Mail>(rule, std::move(host));
      break;
  }
  return deliverer;
}

absl::Status CheckTools(const NotifyRule& rule) {
  absl::Status status;
  if (rule.kind() == ReceiverKind::kUrl) {
    status = CheckCurlLibrary();
    if (status.ok() && !rule.ca_file.empty() && access(rule.ca_file.c_str(), R_OK) != 0) {
      status = ErrnoToStatus(errno, StrCat("ca_file ", rule.ca_file.string()));
    }
  } else {
    const std::string program =
        rule.kind() == ReceiverKind::kCommand ? rule.command[0] : rule.sendmail.string();
    if (access(program.c_str(), X_OK) != 0) {
      status = ErrnoToStatus(errno, StrCat("run ", program));
    }
  }
  if (status.ok()) return status;
  return absl::FailedPreconditionError(
      StrCat(rule.source, ": [[notify]]: ", ToStd(status.message())));
}

}  // namespace h5mirror::server
