#include "client_vfd/plugin/modes/embedded_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/host/state_name.h"
#include "client_vfd/plugin/host/told_once.h"

namespace h5mirror::vfd {
namespace {

using ErrorText = std::array<char, 4096>;  // that a module fills in

// A program without the right to look must not take that for kNothing.
enum class Beside { kNothing, kThere, kUnknown };
Beside LookBeside(const std::string& real_path, const char* name) {
  if (access((real_path + ".h5m/" + name).c_str(), F_OK) == 0) return Beside::kThere;
  // Nor can anything have a name there that is too long.
  const bool has_none = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
  return has_none ? Beside::kNothing : Beside::kUnknown;
}

constexpr char kForked[] =
    "the process was forked after it was opened with server=embedded; open it again in the child, "
    "when the parent has closed it";

// Whether the head is locked by a program that writes it, as far as one can tell: where HDF5's
// locks are off, a program that has the history open is taken for a writer.
bool IsBeingWritten(const std::string& path, Locking locking) {
  if (locking == Locking::kNo) return true;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return true;
  const bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
  close(fd);
  return is_locked;
}

// Whether anybody else has the head open, by HDF5's lock.
bool IsInUse(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return is_locked;
}

// Reports and log lines of a file, while it is open.
struct Speaker {
  const HostLibrary* host;  // null: no report
  std::shared_ptr<const Config> config;
  std::string real_path;
};

void OnNotify(void* context, const H5mEvent* event) {
  static auto* const told = new ToldOnce;
  const auto& speaker = *static_cast<const Speaker*>(context);
  const bool news = event->to_user != 0 && told->IsNews(speaker.real_path, event->detail);
  const Audience audience = news ? Audience::kUserToo : Audience::kLogOnly;
  Say(speaker.config->log, audience,
      *event->detail != '\0'
          ? event->detail
          : speaker.real_path + ": " + event->event + ": " + StateName(event->state) + ", cut " +
                std::to_string(event->cut) + ", version " + std::to_string(event->version));
  if (speaker.host == nullptr) return;
  ReportLine line;
  line.event = event->event;
  line.file = line.name = speaker.real_path;
  line.server = speaker.config->server;
  line.state = StateName(event->state);
  line.cut = event->cut;
  line.version = event->version;
  line.detail = event->detail;
  Report(*speaker.host, line);
}

void OnRelease(void* context) { delete static_cast<Speaker*>(context); }

}  // namespace

EmbeddedFile::EmbeddedFile(const HostLibrary& host, std::shared_ptr<const Config> config,
                           const EmbeddedTarget& target, const H5mEmbeddedApi& api)
    // Without SWMR: readers of the plain file would see nothing before the next cut is applied.
    : UnderFile(kCommonFeatures),
      host_(host),
      config_(std::move(config)),
      api_(api),
      name_(target.given_name),
      fork_generation_(ForkGeneration()) {}

std::unique_ptr<EmbeddedFile> EmbeddedFile::Open(const HostLibrary& host,
                                                 std::shared_ptr<const Config> config,
                                                 const EmbeddedTarget& target) {
  std::string load_error;
  const H5mEmbeddedApi* const api = LoadEmbedded(&load_error);
  if (api == nullptr) {
    PushOpenErrno(host, target.given_name, ENOSYS, load_error);
    return nullptr;
  }
  std::unique_ptr<EmbeddedFile> file(new EmbeddedFile(host, config, target, *api));
  auto speaker = std::make_unique<Speaker>(Speaker{&host, config, target.real_path});
  H5mEmbeddedOpen open{};
  open.path = target.real_path.c_str();
  open.host = &host;
  open.intent = target.intent;
  open.lock_head = target.locking == Locking::kYes ? 1 : 0;
  open.mode_bits = target.mode_bits;
  open.timeout_ms = config->TimeoutMs();
  open.page_size_bytes = config->page_size_bytes;
  open.version_every_ms = config->version_every_ms;
  open.version_min_interval_ms = config->version_min_interval_ms;
  open.program = program_invocation_short_name;
  open.notify = OnNotify;
  open.release = OnRelease;
  open.context = speaker.get();
  int error_number = 0;
  ErrorText error{};
  file->file_ = api->open(&open, &error_number, error.data(), error.size());
  if (file->file_ == nullptr) {
    PushOpenErrno(host, target.given_name, error_number, error.data());
    return nullptr;
  }
  static_cast<void>(speaker.release());
  return file;
}

std::unique_ptr<EmbeddedFile> EmbeddedFile::Share(const HostLibrary& host,
                                                  std::shared_ptr<const Config> config,
                                                  const EmbeddedTarget& target) {
  const H5mEmbeddedApi* const api = LoadedEmbedded();
  if (api == nullptr) return nullptr;
  H5mEmbedded* const shared = api->share(target.real_path.c_str(), &host);
  if (shared == nullptr) return nullptr;
  std::unique_ptr<EmbeddedFile> file(new EmbeddedFile(host, std::move(config), target, *api));
  file->file_ = shared;
  file->shares_ = true;
  return file;
}

herr_t EmbeddedFile::Told(int error_number, const char* error) const {
  if (error_number == 0) return 0;
  PushWriteErrno(host_, name_, error_number, error);
  return -1;
}

herr_t EmbeddedFile::Close() {
  if (InForkedChild()) return 0;  // The parent's to close.
  const bool clean = shares_ || detector_.OnClose() == Moment::kClose;
  ErrorText error{};
  const int failed =
      api_.close(file_, clean ? 1 : 0, config_->comment.c_str(), error.data(), error.size());
  return Told(failed, error.data());
}

herr_t EmbeddedFile::Read(H5FD_mem_t, hid_t, haddr_t addr, size_t size, void* buffer) {
  const bool forked = InForkedChild();
  ErrorText error{};
  const int failed =
      forked ? EIO : api_.read(file_, addr, buffer, size, error.data(), error.size());
  if (failed == 0) return 0;
  PushReadErrno(host_, name_, failed, forked ? kForked : error.data());
  return -1;
}

herr_t EmbeddedFile::Write(H5FD_mem_t, hid_t, haddr_t addr, size_t size, const void* buffer) {
  if (InForkedChild()) return Told(EIO, kForked);
  ErrorText error{};
  const int failed = api_.write(file_, addr, buffer, size, error.data(), error.size());
  const herr_t result = Told(failed, error.data());
  detector_.OnWrite(OutcomeOf(result));
  return result;
}

herr_t EmbeddedFile::Truncate(hid_t, hbool_t closing) {
  if (InForkedChild()) return Told(EIO, kForked);
  ErrorText error{};
  const int failed = api_.truncate(file_, eoa(), error.data(), error.size());
  const herr_t result = Told(failed, error.data());
  detector_.OnTruncate(PhaseOf(closing), OutcomeOf(result));
  return result;
}

herr_t EmbeddedFile::CutHere() {
  const ArmedBarrier::Request request = barrier_.Begin(*config_);
  ErrorText error{};
  int acknowledged = 0;
  const int failed = api_.barrier(file_, request.kind, request.ack, request.comment.c_str(),
                                  &acknowledged, error.data(), error.size());
  barrier_.SetResult(acknowledged != 0 ? 0 : 1);
  return Told(failed, error.data());
}

herr_t EmbeddedFile::Flush(hid_t, hbool_t closing) {
  if (InForkedChild()) return 0;  // What there was to flush has failed as a write.
  if (detector_.OnFlush(PhaseOf(closing), Outcome::kOk) != Moment::kFlush) return 0;
  return CutHere();
}

namespace {

bool Has(const std::string& real_path, const char* name) {
  return LookBeside(real_path, name) == Beside::kThere;
}

bool IsUnclean(const std::string& real_path) {
  return Has(real_path, "open") || Has(real_path, "journal");
}

// Whether another program sees to the head: a writer, which alone knows more than the file shows,
// or a program that puts the head in order.
bool IsOthersToHeal(const EmbeddedTarget& target) {
  return !IsUnclean(target.real_path) || IsBeingWritten(target.real_path, target.locking);
}

// Waits for others that have the history, for as long as that may end by itself. EAGAIN: it has not
// ended. 0: done, or others see to it.
int HealOnceFree(const H5mEmbeddedApi& api, const Config& config, const EmbeddedTarget& target,
                 ErrorText* error) {
  const std::string& real_path = target.real_path;
  Speaker speaker{nullptr, std::make_shared<const Config>(config), real_path};
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(config.TimeoutMs());
  while (true) {
    const int failed =
        api.heal(real_path.c_str(), program_invocation_short_name, config.TimeoutMs(), OnNotify,
                 &speaker, error->data(), error->size());
    if (failed != EAGAIN) return failed;
    if (IsOthersToHeal(target)) return 0;
    // A change that is on its way cannot be finished before they close the file, whenever that is.
    const bool is_held = Has(real_path, "journal") && IsInUse(real_path);
    if (is_held || std::chrono::steady_clock::now() >= deadline) return failed;
  }
}

}  // namespace

void HealEmbeddedHead(const Config& config, const EmbeddedTarget& target) {
  const std::string& real_path = target.real_path;
  if (!IsUnclean(real_path)) return;
  std::string load_error;
  const H5mEmbeddedApi* api = LoadEmbedded(&load_error);
  ErrorText error{};
  const int failed = api == nullptr ? ENOSYS : HealOnceFree(*api, config, target, &error);
  if (failed == 0 || failed == ENOENT) return;  // Done; or a history that never came to be.
  // The file is another user's, whose program may be at work.
  if (failed == EACCES && IsOthersToHeal(target)) return;
  Say(config.log, Audience::kUserToo,
      real_path + " was left by a crash, cannot be put in order, and is read as it is: " +
          (api == nullptr ? load_error : error.data()));
}

void FinishEdit(const Config& config, const EmbeddedTarget& target) {
  const std::string& path = target.real_path;
  switch (LookBeside(path, "journal")) {
    case Beside::kNothing:
      return;
    case Beside::kThere:
      return HealEmbeddedHead(config, target);
    case Beside::kUnknown:
      return Say(
          config.log, Audience::kUserToo,
          path + " is read as it is: whether a change of it was broken off cannot be told, as " +
              path + ".h5m cannot be looked into; its owner may let others search it");
  }
}

namespace {

// True: a record of one mirror or of several lies there (docs/reference/format.md, "The client's
// record").
bool HasRecord(const std::string& directory) {
  const auto close = [](DIR* stream) { closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(opendir(directory.c_str()), close);
  if (!stream) return false;
  while (const dirent* const entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "client.json" || (name.starts_with("client-") && name.ends_with(".json"))) {
      return true;
    }
  }
  return false;
}

}  // namespace

Problem EditBrokenOff(const std::string& real_path) {
  struct stat journal {};
  if (stat((real_path + ".h5m/journal").c_str(), &journal) != 0 || journal.st_size == 0) {
    return std::nullopt;
  }
  return real_path +
         " may hold a part of an edit that was broken off, which a server must not get: h5edit "
         "--recover " +
         real_path + " finishes it, h5edit --recover --discard " + real_path + " takes it back";
}

Problem EmbeddedHistoryBeside(const std::string& real_path) {
  const std::string history = real_path + ".h5m/";
  const auto exists = [&](const char* name) { return access((history + name).c_str(), F_OK) == 0; };
  if (!exists("lock") || !exists("index") || HasRecord(history)) return std::nullopt;
  return real_path +
         " has a history of its own beside it, which a write that goes around it would "
         "damage: open it with server=embedded, or move it under a server's root, or remove " +
         history + " to forget its versions";
}

}  // namespace h5mirror::vfd
