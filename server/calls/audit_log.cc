#include "server/calls/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/owned_fd.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kTellEvery = absl::Minutes(1);

std::string Cut(std::string_view text) {
  if (text.size() <= kTextMax) return std::string(text);
  return StrCat(text.substr(0, kTextMax), "...");
}

Json FilesOf(const Needs& needs) {
  Json files = Json::array();
  for (const Need& need : needs) {
    const std::string& name = need.file.empty() ? need.shown : need.file;
    if (name.empty()) continue;
    Json file{{"name", Cut(name)}, {"right", NameOf(need.right)}};
    if (need.version != 0) file["version"] = need.version;
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<OwnedFd> OpenToAppend(const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe that nobody reads would never be open.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  OwnedFd fd(path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                         : open(path.c_str(), kFlags, 0640));
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
  if (!record.claimed.empty()) line["claimed"] = Cut(record.claimed);
  line["peer"] = record.peer;
  if (record.uid && *record.uid != kNamelessUid) line["uid"] = *record.uid;
  line["method"] = record.method;
  line["files"] = FilesOf(record.needs);
  if (!is_end) return Dump(line);
  line["bytes_sent"] = record.bytes.sent;
  line["bytes_received"] = record.bytes.received;
  line["status"] = absl::StatusCodeToString(record.status.code());
  if (record.http_status != 0) line["http_status"] = record.http_status;
  if (!record.status.ok()) line["message"] = Cut(ToStd(record.status.message()));
  line["seconds"] = absl::ToDoubleSeconds(record.took);
  return Dump(line);
}

struct AuditLog::State {
  explicit State(std::filesystem::path its_path) : path(std::move(its_path)) {}

  // The thread.
  void Run();
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return ends || reopens || !queue.empty();
  }
  void Reopen();
  // Returns how many lines of `text` were not written, and in `error` why.
  uint64_t Append(std::string_view text, int& error);
  void Lose(uint64_t lines, int error) ABSL_LOCKS_EXCLUDED(mutex);

  const std::filesystem::path path;
  OwnedFd fd;           // the thread's own, as is_cut
  bool is_cut = false;  // A part of a line is at the end of the file.

  absl::Mutex mutex;
  std::string queue ABSL_GUARDED_BY(mutex);  // whole lines
  bool reopens ABSL_GUARDED_BY(mutex) = false;
  bool ends ABSL_GUARDED_BY(mutex) = false;
  bool has_ended ABSL_GUARDED_BY(mutex) = false;
  uint64_t lost ABSL_GUARDED_BY(mutex) = 0;
  absl::Time told ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
};

void AuditLog::State::Run() {
  for (;;) {
    std::string text;
    bool reopens_now = false;
    {
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(this, &State::HasNews));
      has_ended = ends && queue.empty();
      if (has_ended) return;
      text.swap(queue);
      reopens_now = std::exchange(reopens, false);
    }
    if (reopens_now) Reopen();
    int error = 0;
    const uint64_t lines = Append(text, error);
    if (lines > 0) Lose(lines, error);
  }
}

void AuditLog::State::Reopen() {
  absl::StatusOr<OwnedFd> opened = OpenToAppend(path);
  if (!opened.ok()) {
    spdlog::error("reload: the old audit log is written on: {}", ToStd(opened.status().message()));
    return;
  }
  fd = *std::move(opened);
  is_cut = false;
}

uint64_t AuditLog::State::Append(std::string_view text, int& error) {
  std::string whole;
  if (is_cut) {
    // Starts a new line after a line that was written only in part.
    whole = StrCat("\n", text);
    text = whole;
  }
  const char* const begin = text.data();
  while (!text.empty()) {
    const ssize_t written = write(fd.get(), text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno != EINTR) {
      error = errno;
      break;
    }
  }
  if (text.data() != begin) is_cut = text.data()[-1] != '\n';
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

void AuditLog::State::Lose(uint64_t lines, int error) {
  uint64_t in_all;
  {
    absl::MutexLock lock(&mutex);
    lost += lines;
    in_all = lost;
    if (absl::Now() - told < kTellEvery) return;
    told = absl::Now();
  }
  spdlog::error("audit_log {}: {} lines are lost since the start: {}", path.string(), in_all,
                error == 0 ? "they came faster than the disk takes them" : strerror(error));
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::filesystem::path& path) {
  auto state = std::make_shared<State>(path);
  H5M_ASSIGN_OR_RETURN(state->fd, OpenToAppend(path));
  std::thread([state] {
    pthread_setname_np(pthread_self(), "h5m-audit");
    state->Run();
  }).detach();
  return absl::WrapUnique(new AuditLog(std::move(state)));
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&state_->mutex);
  state_->ends = true;
  if (!state_->mutex.AwaitWithTimeout(absl::Condition(&state_->has_ended), kEndMax)) {
    spdlog::error("audit_log {}: the last lines are lost, as the disk does not take them",
                  state_->path.string());
  }
}

void AuditLog::Reopen() {
  absl::MutexLock lock(&state_->mutex);
  state_->reopens = true;
}

void AuditLog::Write(const AuditRecord& record) {
  const std::string line = FormatAuditRecord(record) + "\n";
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->queue.size() + line.size() <= kQueueMax) {
      state_->queue += line;
      return;
    }
  }
  state_->Lose(1, 0);
}

uint64_t AuditLog::lost() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->lost;
}

}  // namespace h5mirror::server
