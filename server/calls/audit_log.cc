#include "server/calls/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kTellEvery = absl::Minutes(1);

Json FilesOf(const Needs& needs) {
  Json files = Json::array();
  for (const Need& need : needs) {
    if (need.file.empty()) continue;
    Json file{{"name", need.file}, {"right", NameOf(need.right)}};
    if (need.version != 0) file["version"] = need.version;
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<OwnedFd> OpenToAppend(const std::filesystem::path& path) {
  OwnedFd fd(path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                         : open(path.c_str(),
                                O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (fd.valid()) return fd;
  return absl::InvalidArgumentError(
      StrCat("audit_log = \"", path.string(), "\": cannot append to it: ", strerror(errno)));
}

std::string Dump(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string FormatAuditRecord(const AuditRecord& record) {
  Json line;
  const bool is_end = record.event == AuditRecord::Event::kEnd;
  line["time"] = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", record.time, absl::UTCTimeZone());
  line["event"] = is_end ? "end" : "begin";
  line["user"] = record.caller == nullptr ? "" : record.caller->name;
  line["issuer"] =
      record.caller == nullptr ? std::string_view() : IssuerName(record.caller->issuer);
  if (!record.claimed.empty()) line["claimed"] = record.claimed;
  line["peer"] = record.peer;
  if (record.uid && *record.uid != kNamelessUid) line["uid"] = *record.uid;
  line["method"] = record.method;
  line["files"] = FilesOf(record.needs);
  if (!is_end) return Dump(line);
  line["bytes_sent"] = record.bytes.sent;
  line["bytes_received"] = record.bytes.received;
  line["status"] = absl::StatusCodeToString(record.status.code());
  if (!record.status.ok()) line["message"] = std::string(record.status.message());
  line["seconds"] = absl::ToDoubleSeconds(record.took);
  return Dump(line);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::filesystem::path& path) {
  auto log = absl::WrapUnique(new AuditLog(path));
  H5M_RETURN_IF_ERROR(log->Reopen());
  log->thread_ = std::thread([raw = log.get()] {
    pthread_setname_np(pthread_self(), "h5m-audit");
    raw->Run();
  });
  return log;
}

AuditLog::~AuditLog() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status AuditLog::Reopen() {
  H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenToAppend(path_));
  absl::MutexLock lock(&mutex_);
  fd_ = std::make_shared<const OwnedFd>(std::move(fd));
  return absl::OkStatus();
}

void AuditLog::Write(const AuditRecord& record) {
  const std::string line = FormatAuditRecord(record) + "\n";
  absl::MutexLock lock(&mutex_);
  if (queue_.size() + line.size() <= kQueueMax) {
    queue_ += line;
  } else {
    ++lost_;
  }
}

void AuditLog::Run() {
  for (;;) {
    std::string text;
    std::shared_ptr<const OwnedFd> fd;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &AuditLog::HasNews));
      if (queue_.empty()) return;  // It ends.
      text.swap(queue_);
      fd = fd_;
    }
    int error = 0;
    lost_ += Append(fd->get(), text, error);
    TellLost(error);
  }
}

uint64_t AuditLog::Append(int fd, std::string_view text, int& error) {
  bool is_cut = false;  // A part of a line is in the file.
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
      is_cut = !text.empty() && text.data()[-1] != '\n';
    } else if (written < 0 && errno != EINTR) {
      error = errno;
      break;
    }
  }
  if (text.empty()) return 0;
  // What comes later begins on a line of its own.
  if (is_cut && write(fd, "\n", 1) < 0) error = errno;
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

void AuditLog::TellLost(int error) {
  const uint64_t lost = lost_;
  const absl::Time now = absl::Now();
  if (lost == told_lost_ || now - told_ < kTellEvery) return;
  told_ = now;
  told_lost_ = lost;
  spdlog::error("audit_log {}: {} lines are lost since the start: {}", path_.string(), lost,
                error == 0 ? "they came faster than the disk takes them" : strerror(error));
}

}  // namespace h5mirror::server
