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

#include "client_vfd/plugin/host/fork_guard.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/host/state_name.h"
#include "client_vfd/plugin/host/told_once.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {
namespace {

constexpr size_t kErrorBytes = 4096;

// Who may not look must not take that for nothing.
enum class Beside { kNothing, kThere, kUnknown };
Beside LookBeside(const std::string& real_path, const char* name) {
  if (access((real_path + ".h5m/" + name).c_str(), F_OK) == 0) return Beside::kThere;
  return errno == ENOENT || errno == ENOTDIR ? Beside::kNothing : Beside::kUnknown;
}

constexpr char kForked[] =
    "the process was forked after it was opened with server=embedded; open it again in the child, "
    "when the parent has closed it";

// Whether the head is locked by a program that writes it, as far as one can tell: where HDF5's
// locks are off, whoever has the history is taken for one.
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

struct EmbeddedFile {
  H5FD_t base{};
  const HostLibrary* host = nullptr;
  std::shared_ptr<const Config> config;
  const H5mEmbeddedApi* api = nullptr;
  H5mEmbedded* file = nullptr;
  std::string name;
  haddr_t eoa = 0;
  unsigned fork_generation = 0;
  bool shares = false;  // HDF5's second look at a file that it has open: never written
  BarrierDetector detector;
  H5mBarrier armed = H5M_TICK;
  std::string armed_comment;
  bool barrier_done = false;
  int barrier_result = 1;

  bool InForkedChild() const { return ForkGeneration() != fork_generation; }
};

EmbeddedFile* Of(H5FD_t* file) { return reinterpret_cast<EmbeddedFile*>(file); }
const EmbeddedFile* Of(const H5FD_t* file) { return reinterpret_cast<const EmbeddedFile*>(file); }

// What speaks for a file, as long as it is open.
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

herr_t Failed(const EmbeddedFile& file, int error_number, const char* error) {
  PushWriteErrno(*file.host, file.name, error_number, error);
  return -1;
}

H5mAck ToApi(Ack ack) {
  return ack == Ack::kNone      ? H5M_ACK_NONE
         : ack == Ack::kApplied ? H5M_ACK_APPLIED
                                : H5M_ACK_DURABLE;
}

Outcome OutcomeOf(herr_t result) { return result < 0 ? Outcome::kFailed : Outcome::kOk; }
Phase PhaseOf(hbool_t closing) { return closing ? Phase::kClosing : Phase::kOpen; }

herr_t Close(H5FD_t* base) {
  const std::unique_ptr<EmbeddedFile> file(Of(base));
  if (file->InForkedChild()) return 0;  // The parent's to close.
  std::array<char, kErrorBytes> error{};
  const bool clean = file->shares || file->detector.OnClose() == Moment::kClose;
  const int failed = file->api->close(file->file, clean ? 1 : 0, file->config->comment.c_str(),
                                      error.data(), error.size());
  return failed == 0 ? 0 : Failed(*file, failed, error.data());
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  // sec2's but for POSIX_COMPAT_HANDLE, as there is no descriptor, and for SWMR: readers of the
  // plain file would see nothing before the next cut is applied.
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; }
haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) {
  return Of(file)->InForkedChild() ? 0 : Of(file)->api->size_bytes(Of(file)->file);
}

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Of(file)->eoa = address;
  return 0;
}

herr_t Read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  EmbeddedFile& file = *Of(base);
  std::array<char, kErrorBytes> error{};
  const int failed = file.InForkedChild() ? EIO
                                          : file.api->read(file.file, address, buffer, size,
                                                           error.data(), error.size());
  if (failed == 0) return 0;
  PushReadErrno(*file.host, file.name, failed, file.InForkedChild() ? kForked : error.data());
  return -1;
}

herr_t Write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  EmbeddedFile& file = *Of(base);
  if (file.InForkedChild()) return Failed(file, EIO, kForked);
  std::array<char, kErrorBytes> error{};
  const int failed = file.api->write(file.file, address, buffer, size, error.data(), error.size());
  const herr_t result = failed == 0 ? 0 : Failed(file, failed, error.data());
  file.detector.OnWrite(OutcomeOf(result));
  return result;
}

herr_t Truncate(H5FD_t* base, hid_t, hbool_t closing) {
  EmbeddedFile& file = *Of(base);
  if (file.InForkedChild()) return Failed(file, EIO, kForked);
  std::array<char, kErrorBytes> error{};
  const int failed = file.api->truncate(file.file, file.eoa, error.data(), error.size());
  const herr_t result = failed == 0 ? 0 : Failed(file, failed, error.data());
  file.detector.OnTruncate(PhaseOf(closing), OutcomeOf(result));
  return result;
}

herr_t CutHere(EmbeddedFile& file) {
  file.barrier_done = true;
  H5mBarrier kind = file.armed;
  const Config& config = *file.config;
  if (kind == H5M_TICK && config.flush == FlushKind::kSync) kind = H5M_SYNC;
  H5mAck ack = ToApi(kind == H5M_COMMIT ? config.ack_commit : config.ack_tick);
  if (kind == H5M_SYNC) ack = H5M_ACK_DURABLE;
  if (kind == H5M_TICK && ack == H5M_ACK_DURABLE) kind = H5M_SYNC;
  const std::string& comment = file.armed_comment.empty() ? config.comment : file.armed_comment;
  std::array<char, kErrorBytes> error{};
  int acknowledged = 0;
  const int failed =
      file.api->barrier(file.file, kind, ack, kind == H5M_COMMIT ? comment.c_str() : "",
                        &acknowledged, error.data(), error.size());
  file.barrier_result = acknowledged != 0 ? 0 : 1;
  return failed == 0 ? 0 : Failed(file, failed, error.data());
}

herr_t Flush(H5FD_t* base, hid_t, hbool_t closing) {
  EmbeddedFile& file = *Of(base);
  if (file.InForkedChild()) return 0;  // What there was to flush has failed as a write.
  if (file.detector.OnFlush(PhaseOf(closing), Outcome::kOk) != Moment::kFlush) return 0;
  return CutHere(file);
}

H5FD_class_t MakeClass() {
  H5FD_class_t made{};
  made.version = H5FD_CLASS_VERSION;
  made.name = "h5mirror_embedded";
  made.close = Close;
  made.query = Query;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.read = Read;
  made.write = Write;
  made.flush = Flush;
  made.truncate = Truncate;
  return made;
}

std::unique_ptr<EmbeddedFile> MakeFile(const HostLibrary& host,
                                       std::shared_ptr<const Config> config,
                                       const EmbeddedTarget& target) {
  auto file = std::make_unique<EmbeddedFile>();
  file->base.cls = EmbeddedClass();
  file->host = &host;
  file->config = std::move(config);
  file->name = target.given_name;
  file->fork_generation = ForkGeneration();
  return file;
}

}  // namespace

H5FD_t* OpenEmbedded(const HostLibrary& host, std::shared_ptr<const Config> config,
                     const EmbeddedTarget& target) {
  std::unique_ptr<EmbeddedFile> file = MakeFile(host, config, target);
  std::string load_error;
  file->api = LoadEmbedded(&load_error);
  if (file->api == nullptr) {
    PushOpenErrno(host, target.given_name, ENOSYS, load_error);
    return nullptr;
  }
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
  std::array<char, kErrorBytes> error{};
  file->file = file->api->open(&open, &error_number, error.data(), error.size());
  if (file->file == nullptr) {
    PushOpenErrno(host, target.given_name, error_number, error.data());
    return nullptr;
  }
  static_cast<void>(speaker.release());
  return &file.release()->base;
}

H5FD_t* ShareEmbedded(const HostLibrary& host, std::shared_ptr<const Config> config,
                      const EmbeddedTarget& target) {
  const H5mEmbeddedApi* api = LoadedEmbedded();
  if (api == nullptr) return nullptr;
  H5mEmbedded* shared = api->share(target.real_path.c_str(), &host);
  if (shared == nullptr) return nullptr;
  std::unique_ptr<EmbeddedFile> file = MakeFile(host, std::move(config), target);
  file->api = api;
  file->file = shared;
  file->shares = true;
  return &file.release()->base;
}

const H5FD_class_t* EmbeddedClass() {
  static const H5FD_class_t embedded_class = MakeClass();
  return &embedded_class;
}

const void* StoreOf(const H5FD_t* file) { return Of(file)->file; }

void ArmEmbedded(H5FD_t* base, H5mBarrier kind, std::string comment) {
  EmbeddedFile& file = *Of(base);
  file.armed = kind;
  file.armed_comment = std::move(comment);
  file.barrier_done = false;
}

int FinishEmbedded(H5FD_t* base) {
  EmbeddedFile& file = *Of(base);
  file.armed = H5M_TICK;
  file.armed_comment.clear();
  return file.barrier_done ? file.barrier_result : 1;
}

void StatusOfEmbedded(const H5FD_t* file, H5mStatus* status) {
  if (!Of(file)->InForkedChild()) Of(file)->api->status(Of(file)->file, status);
}

void HealEmbeddedHead(const Config& config, const EmbeddedTarget& target) {
  const std::string& real_path = target.real_path;
  const auto has = [&real_path](const char* name) {
    return LookBeside(real_path, name) == Beside::kThere;
  };
  const auto is_unclean = [&has] { return has("open") || has("journal"); };
  if (!is_unclean()) return;
  std::string load_error;
  const H5mEmbeddedApi* api = LoadEmbedded(&load_error);
  std::array<char, kErrorBytes> error{};
  Speaker speaker{nullptr, std::make_shared<const Config>(config), real_path};
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(config.TimeoutMs());
  int failed = api == nullptr ? ENOSYS : EAGAIN;
  while (failed == EAGAIN) {
    failed = api->heal(real_path.c_str(), program_invocation_short_name, config.TimeoutMs(),
                       OnNotify, &speaker, error.data(), error.size());
    // The others who have the history: a writer, who alone knows more than the file shows; else
    // somebody who puts it in order, too.
    if (failed != EAGAIN) break;
    if (!is_unclean() || IsBeingWritten(real_path, target.locking)) return;
    // A change that is on its way cannot be finished before they close the file, whenever that is.
    if (has("journal") && IsInUse(real_path)) break;
    if (std::chrono::steady_clock::now() >= deadline) break;
  }
  if (failed == 0 || failed == ENOENT) return;  // Done; or a history that never came to be.
  // Of another user, whose program may be at work.
  if (failed == EACCES && (!is_unclean() || IsBeingWritten(real_path, target.locking))) return;
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

// Of a mirror, or of several: docs/reference/format.md, "The client's record".
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
