#include "server/calls/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "absl/memory/memory.h"
#include "base/errno_status.h"
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
  OwnedFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!fd.valid()) return ErrnoToStatus(errno, StrCat("audit_log ", path.string()));
  return fd;
}

}  // namespace

std::string FormatAuditRecord(const AuditRecord& record) {
  Json line;
  line["time"] = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", record.end, absl::UTCTimeZone());
  line["user"] = record.caller == nullptr ? "" : record.caller->name;
  line["issuer"] =
      record.caller == nullptr ? std::string_view() : IssuerName(record.caller->issuer);
  line["peer"] = record.peer;
  line["method"] = record.method;
  line["files"] = FilesOf(record.needs);
  line["bytes_sent"] = record.bytes.sent;
  line["bytes_received"] = record.bytes.received;
  line["status"] = absl::StatusCodeToString(record.status.code());
  if (!record.status.ok()) line["message"] = std::string(record.status.message());
  line["seconds"] = absl::ToDoubleSeconds(record.took);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::filesystem::path& path) {
  auto log = absl::WrapUnique(new AuditLog(path));
  H5M_RETURN_IF_ERROR(log->Reopen());
  return log;
}

absl::Status AuditLog::Reopen() {
  H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenToAppend(path_));
  absl::MutexLock lock(&mutex_);
  fd_ = std::move(fd);
  return absl::OkStatus();
}

void AuditLog::Write(const AuditRecord& record) {
  const std::string line = FormatAuditRecord(record) + "\n";
  absl::MutexLock lock(&mutex_);
  const ssize_t written = write(fd_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  // What follows half a line begins on one of its own.
  if (written > 0 && ::write(fd_.get(), "\n", 1) != 1) ++lost_;
  ++lost_;
  if (record.end - told_ < kTellEvery) return;
  told_ = record.end;
  spdlog::error("audit: {} lines are lost, the file system of {} does not take them: {}",
                lost_.load(), path_.string(), strerror(error));
}

}  // namespace h5mirror::server
