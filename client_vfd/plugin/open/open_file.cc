#include "client_vfd/plugin/open/open_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/config/name_rules.h"
#include "client_vfd/plugin/config/real_path.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/metadata_buffer/buffer_fork.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/open/reader_open.h"
#include "client_vfd/plugin/open/remote_open.h"
#include "client_vfd/plugin/open/swmr_file.h"

namespace h5mirror::vfd {
namespace {

// The driver's config string; empty where there is none.
std::string ConfigText(const HostLibrary& host, hid_t fapl) {
  if (!host.api.usable) {
    const char* text = std::getenv("HDF5_DRIVER_CONFIG");
    return text != nullptr ? text : "";
  }
  QuietErrors quiet(host.api);
  std::array<char, 1024> buffer{};
  const ssize_t length = host.api.p_get_driver_config_str(fapl, buffer.data(), buffer.size());
  if (length <= 0) return "";
  if (static_cast<size_t>(length) < buffer.size()) return buffer.data();
  std::string text(static_cast<size_t>(length) + 1, '\0');
  host.api.p_get_driver_config_str(fapl, text.data(), text.size());
  return text.c_str();
}

H5mStat ToStat(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return H5mStat{status.st_ino, status.st_size, nanoseconds(status.st_mtim),
                 nanoseconds(status.st_ctim)};
}

const std::string& HostName() {
  static const auto* const known = [] {
    std::array<char, HOST_NAME_MAX + 1> name{};
    const bool found = gethostname(name.data(), name.size() - 1) == 0;
    return new std::string(found ? name.data() : "localhost");
  }();
  return *known;
}

// O_TRUNC empties the file before a lock could be taken; a file that another process has locked is
// refused here instead. The caller then fails the open.
Locking LockedByOther(const char* name) {
  const int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Locking::kNo;
  const int result = flock(fd, LOCK_EX | LOCK_NB);
  const int error = errno;
  close(fd);
  return result < 0 && error == EWOULDBLOCK ? Locking::kYes : Locking::kNo;
}

// In sec2's words, which h5py reads.
void PushLocked(const HostLibrary& host) {
  PushOpenError(host, "unable to lock file, errno = " + std::to_string(EAGAIN) +
                          ", error message = '" + std::strerror(EAGAIN) + "'");
}

// sec2 leaves the lock to a callback that comes right after the open; ours has none, so that the
// library neither sets nor checks the superblock's status flags.
bool TakeLock(OpenFile* file, unsigned flags, hid_t fapl) {
  if (WantedLocking(*file->host, fapl) == Locking::kNo) return true;
  if (LockLocal(file->under, flags) < 0) return false;
  // As H5F_open does for SWMR writers, so that readers can come.
  if ((flags & H5F_ACC_SWMR_WRITE) != 0) UnlockLocal(file->under);
  return true;
}

// HDF5 takes a file's size at the open, before the lock, and calls the file truncated where another
// program has made it longer and closed it in between. Who makes the file anew knows it anyway, and
// beside an SWMR writer it is nobody's to know.
bool KnowsItsSize(H5FD_t* under, int fd, unsigned flags) {
  constexpr unsigned kOthers =
      H5F_ACC_TRUNC | H5F_ACC_EXCL | H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ;
  struct stat locked {};
  if ((flags & kOthers) != 0 || fd < 0 || fstat(fd, &locked) != 0) return true;
  return under->cls->get_eof(under, H5FD_MEM_DEFAULT) == static_cast<haddr_t>(locked.st_size);
}

// Where the open fails: why, stays on the error stack, which a call of the library clears.
herr_t CloseUnder(const HostLibrary& host, H5FD_t* under) {
  if (!host.api.usable || host.api.e_get_num(H5E_DEFAULT) <= 0) return CloseLocal(host, under);
  const QuietErrors quiet(host.api);
  const KeepErrors keep(host.api);
  return CloseLocal(host, under);
}

// Opens the local file; `now` is what it was before the lock. What is open here already has one.
bool OpenAndLock(OpenFile* file, const Config& config, const char* name, unsigned flags, hid_t fapl,
                 haddr_t maxaddr, struct stat* now) {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    file->under = OpenLocal(*file->host, config, name, flags, fapl, maxaddr);
    if (file->under == nullptr) return false;
    const int fd = DescriptorOf(file->under);
    if (fd >= 0 && fstat(fd, now) == 0) file->key = {file->host, now->st_dev, now->st_ino};
    if (IsOpenFile(file->key)) return true;
    const bool is_locked = TakeLock(file, flags, fapl);
    // Of a file that never rests, whose locks are off, HDF5 says what is wrong.
    if (is_locked && (attempt == kAttempts || KnowsItsSize(file->under, fd, flags))) return true;
    CloseUnder(*file->host, file->under);
    if (!is_locked) return false;
  }
}

std::unique_ptr<MirroredFile> MakeMirror(const OpenFile& file, std::shared_ptr<const Config> config,
                                         const char* name, unsigned flags,
                                         const struct stat* before, const struct stat& now,
                                         Locking locking, int fd) {
  if ((flags & H5F_ACC_RDWR) == 0 || config->mode != Mode::kMirror || config->IsEmbedded() ||
      fd < 0) {
    return nullptr;
  }
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(name, nullptr), std::free);
  if (!real) return nullptr;
  const std::optional<std::string> mirror_name = MirrorName(*config, real.get(), HostName());
  if (!mirror_name) return nullptr;
  // As it is now that it is locked: between the look at it and the lock another program may have
  // closed it. What this open truncated is as it was before.
  struct stat locked = now;
  const bool truncated = (flags & H5F_ACC_TRUNC) != 0;
  if (!truncated && fstat(fd, &locked) != 0) return nullptr;
  const bool created = truncated || locked.st_size == 0;
  MirrorTarget target;
  target.real_path = real.get();
  target.name = *mirror_name;
  target.intent = created ? H5M_CREATED : H5M_EXISTING;
  target.stat_at_open = ToStat(truncated && before != nullptr ? *before : locked);
  target.mode_bits = now.st_mode & 0777;
  target.is_locked = locking == Locking::kYes;
  auto mirror = std::make_unique<MirroredFile>(*file.host, std::move(config), std::move(target),
                                               file.under, fd);
  if ((flags & H5F_ACC_SWMR_WRITE) != 0) mirror->OpenedForSwmr();
  return mirror;
}

// Of a file that passes through, where it may be written.
std::unique_ptr<OpenFile::LeftOut> MakeLeftOut(const OpenFile& file, const Config& config,
                                               const char* name, unsigned flags) {
  if ((flags & H5F_ACC_RDWR) == 0 || file.mirror != nullptr) return nullptr;
  const std::string real_path = RealPathOfMissing(name);
  std::string why = WhyLeftOut(config, real_path);
  if (why.empty()) why = "its path or its descriptor cannot be looked at";
  return std::make_unique<OpenFile::LeftOut>(OpenFile::LeftOut{real_path, config.log, why});
}

// Of a file that is to be looked at before HDF5 reads it. In a process that has it open already, it
// was.
std::unique_ptr<OpenFile::Unread> MakeUnread(const OpenFile& file, const Config& config,
                                             const char* name, unsigned flags) {
  if ((flags & H5F_ACC_RDWR) == 0 || (flags & H5F_ACC_TRUNC) != 0 || IsOpenFile(file.key)) {
    return nullptr;
  }
  return std::make_unique<OpenFile::Unread>(OpenFile::Unread{name, config.log});
}

// With metadata=memory, for files that are written and that the rules take, mirrored or not. A
// writer of SWMR relies on the order of its writes from the first one on.
std::unique_ptr<BufferedFile> MakeBuffered(const OpenFile& file, const Config& config,
                                           const char* name, unsigned flags) {
  if (config.metadata != MetadataPlace::kMemory || config.mode == Mode::kReader ||
      config.IsEmbedded() || (flags & H5F_ACC_RDWR) == 0 || (flags & H5F_ACC_SWMR_WRITE) != 0 ||
      !PathUnderRoot(config, RealPathOfMissing(name))) {
    return nullptr;
  }
  std::string load_error;  // Told at the first write that is to be mirrored.
  const bool loads = file.mirror != nullptr && LoadSession(&load_error) != nullptr;
  RegisterBufferFork(loads ? SessionLoaded::kYes : SessionLoaded::kNo);
  return std::make_unique<BufferedFile>(BufferedFile::Target{
      file.host, file.under, file.mirror.get(), name, config.metadata_memory_bytes});
}

// mode=reader. Null: not opened, and the reason is on the host's error stack.
OpenFile* OpenForReading(HostLibrary& host, const Config& config, ReaderTarget target,
                         unsigned flags) {
  if ((flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0) {
    PushOpenErrno(host, target.given_name, EROFS,
                  "mode=reader reads versions on the server and changes none; open it with mode "
                  "\"r\", or leave it out by root=, include= or exclude=");
    return nullptr;
  }
  auto file = std::make_unique<OpenFile>();
  file->host = &host;
  file->under = OpenReader(host, config, std::move(target));
  return file->under != nullptr ? file.release() : nullptr;
}

// Whether writes to it are to go to a server.
bool IsMirrored(const Config& config, const char* name) {
  return config.mode == Mode::kMirror && !config.IsEmbedded() &&
         MirrorName(config, RealPathOfMissing(name), HostName());
}

// The mode of a file that this process makes. umask(2) cannot be asked without being set, which
// another thread might see.
unsigned NewFileMode() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    unsigned mask = 0;
    if (std::sscanf(line.c_str(), "Umask: %o", &mask) == 1) return 0666 & ~mask;
  }
  return 0644;
}

// server=embedded, and the open is for this file. kElsewhere: it is opened as a plain file.
enum class Embedded { kOpened, kFailed, kElsewhere };
Embedded OpenWithHistory(OpenFile* file, const std::shared_ptr<const Config>& config,
                         const char* name, unsigned flags, hid_t fapl, const struct stat* now) {
  HostLibrary& host = *file->host;
  EmbeddedTarget target;
  target.given_name = name;
  target.real_path = RealPathOfMissing(name);
  if (!MirrorName(*config, target.real_path, HostName())) return Embedded::kElsewhere;
  target.locking = WantedLocking(host, fapl);
  file->under = ShareEmbedded(host, config, target);
  if (file->under != nullptr) return Embedded::kOpened;
  if ((flags & H5F_ACC_RDWR) == 0) {
    HealEmbeddedHead(*config, target);
    return Embedded::kElsewhere;
  }
  const bool ours = now != nullptr && IsOpenFile({&host, now->st_dev, now->st_ino});
  if (now != nullptr && !ours && (flags & H5F_ACC_TRUNC) == 0) {
    const SwmrLook look = LookForSwmrWriter(name);
    if (look.writer != SwmrLook::Writer::kNone && look.writer != SwmrLook::Writer::kGone) {
      PushOpenErrno(host, name, EAGAIN, WhyNotOpened(look, name));
      return Embedded::kFailed;
    }
  }
  if (config->under != UnderDriver::kSec2) {
    PushOpenErrno(host, name, EINVAL, "server=embedded does its own I/O: leave out under=");
    return Embedded::kFailed;
  }
  if (now != nullptr && (flags & H5F_ACC_EXCL) != 0) {
    PushOpenErrno(host, name, EEXIST, std::strerror(EEXIST));
    return Embedded::kFailed;
  }
  if (now != nullptr && access(name, W_OK) != 0) {
    PushOpenErrno(host, name, errno, std::strerror(errno));
    return Embedded::kFailed;
  }
  const bool makes = (flags & (H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0;
  target.intent =
      (flags & H5F_ACC_TRUNC) != 0 || (now == nullptr && makes) ? H5M_CREATED : H5M_EXISTING;
  target.mode_bits = now != nullptr ? now->st_mode & 0777 : NewFileMode();
  // A file of this process that is open otherwise has its lock already, and cmp() finds it.
  if (ours) target.locking = Locking::kNo;
  file->under = OpenEmbedded(host, config, target);
  return file->under != nullptr ? Embedded::kOpened : Embedded::kFailed;
}

// The thread's last opens for writing that were refused: of which file, and how many in a row.
struct Refusals {
  size_t name_hash = 0;
  int count = 0;
};
Refusals& LastRefusals() {
  thread_local Refusals refusals;
  return refusals;
}

size_t HashOf(const char* name) { return std::hash<std::string_view>()(name); }

OpenFile* OpenAsAsked(HostLibrary& host, const char* name, unsigned flags, hid_t fapl,
                      haddr_t maxaddr) {
  const RootPtr root = RootOfLinkedOpen(host, fapl);
  const std::string config_text = root != nullptr ? root->config_text : ConfigText(host, fapl);
  std::shared_ptr<const Config> config;
  if (const Problem problem = CachedConfig(config_text, &config)) {
    PushOpenError(host, "h5mirror configuration: " + *problem);
    return nullptr;
  }
  if (config->mode == Mode::kReader) {
    std::optional<ReaderTarget> target =
        FindReaderTarget(*config, config_text, name, HostName(), root);
    if (target) return OpenForReading(host, *config, std::move(*target), flags);
  }
  if (config->mode == Mode::kRemote) {
    std::optional<ReaderTarget> target =
        FindReaderTarget(*config, config_text, name, HostName(), root);
    if (target) {
      const bool makes = (flags & (H5F_ACC_TRUNC | H5F_ACC_EXCL)) != 0;
      std::unique_ptr<OpenFile> file =
          OpenRemote(host, config, std::move(*target), flags, makes ? NewFileMode() : 0644);
      if (file != nullptr && file->mirror != nullptr) {
        file->buffered = MakeBuffered(*file, *config, name, flags);
      }
      return file.release();
    }
  }
  struct stat before {};
  if (stat(name, &before) == 0 && !IsOpenFile({&host, before.st_dev, before.st_ino})) {
    EmbeddedTarget target;
    target.given_name = name;
    target.real_path = RealPathOfMissing(name);
    target.locking = WantedLocking(host, fapl);
    FinishEdit(*config, target);
  }
  const bool existed = stat(name, &before) == 0;
  if (config->IsEmbedded() && config->mode == Mode::kMirror) {
    auto file = std::make_unique<OpenFile>();
    file->host = &host;
    if (existed) file->key = {&host, before.st_dev, before.st_ino};
    const Embedded opened =
        OpenWithHistory(file.get(), config, name, flags, fapl, existed ? &before : nullptr);
    if (opened == Embedded::kFailed) return nullptr;
    if (opened == Embedded::kOpened) {
      file->unread = MakeUnread(*file, *config, name, flags);
      AddOpenFile(file->key);
      return file.release();
    }
  }
  if (existed && (flags & H5F_ACC_RDWR) != 0 && IsMirrored(*config, name)) {
    if (const Problem problem = EmbeddedHistoryBeside(RealPathOfMissing(name))) {
      PushOpenErrno(host, name, EPERM, *problem);
      return nullptr;
    }
  }
  const bool ours = existed && IsOpenFile({&host, before.st_dev, before.st_ino});
  const bool keeps = existed && !ours && (flags & H5F_ACC_TRUNC) == 0;
  if (keeps && (flags & H5F_ACC_RDWR) != 0 && IsMirrored(*config, name)) {
    if (const Problem problem = EditBrokenOff(RealPathOfMissing(name))) {
      PushOpenErrno(host, name, EPERM, *problem);
      return nullptr;
    }
  }
  if (existed && !ours && (flags & H5F_ACC_TRUNC) != 0 &&
      WantedLocking(host, fapl) == Locking::kYes && LockedByOther(name) == Locking::kYes) {
    PushLocked(host);
    return nullptr;
  }
  auto file = std::make_unique<OpenFile>();
  file->host = &host;
  struct stat now {};
  if (!OpenAndLock(file.get(), *config, name, flags, fapl, maxaddr, &now)) return nullptr;
  const int fd = DescriptorOf(file->under);
  file->mirror = MakeMirror(*file, config, name, flags, existed ? &before : nullptr, now,
                            WantedLocking(host, fapl), fd);
  file->buffered = MakeBuffered(*file, *config, name, flags);
  file->unread = MakeUnread(*file, *config, name, flags);
  file->left_out = MakeLeftOut(*file, *config, name, flags);
  if ((flags & H5F_ACC_TRUNC) != 0) BeforeChange(file.get());  // It is changed already.
  if ((flags & H5F_ACC_SWMR_WRITE) != 0) file->swmr = SwmrFlags(SwmrFlags::Opened::kForSwmr);
  AddOpenFile(file->key);
  return file.release();
}

// Why the file that is there cannot be opened for writing, goes to the error stack. False: it can,
// or there is none.
bool PushWhyRefused(HostLibrary& host, const char* name, hid_t fapl, haddr_t maxaddr) {
  struct stat there {};
  if (stat(name, &there) != 0) return false;
  OpenFile* file = OpenAsAsked(host, name, H5F_ACC_RDWR, fapl, maxaddr);
  if (file == nullptr) return true;
  const bool is_refused = IsUnread(*file) && BeforeFirstRead(file) < 0;
  CloseFile(file);
  return is_refused;
}

}  // namespace

// h5py's mode "a" opens for writing, and whatever the reason why it may not, it then makes a file
// that must not be there. Of these two errors programs see the second one: so it has the first
// one's reason. HDF5 opens tentatively before it makes a file, which is a refusal too.
OpenFile* OpenFileFor(HostLibrary& host, const char* name, unsigned flags, hid_t fapl,
                      haddr_t maxaddr) {
  constexpr int kOfAppend = 2;
  ReportLoaded(host);
  Refusals& last = LastRefusals();
  const size_t hash = HashOf(name);
  if ((flags & H5F_ACC_EXCL) != 0) {
    const Refusals before = std::exchange(last, Refusals{});
    const bool appends = before.name_hash == hash && before.count >= kOfAppend;
    if (appends && PushWhyRefused(host, name, fapl, maxaddr)) return nullptr;
    return OpenAsAsked(host, name, flags, fapl, maxaddr);
  }
  OpenFile* file = OpenAsAsked(host, name, flags, fapl, maxaddr);
  const bool is_refused = file == nullptr && (flags & H5F_ACC_RDWR) != 0;
  if (is_refused) last = {hash, last.name_hash == hash ? last.count + 1 : 1};
  return file;
}

void NoteRefusedRead(const char* name) { LastRefusals() = {HashOf(name), 2}; }

Problem ProblemOfDeleting(const HostLibrary& host, const char* name, hid_t fapl) {
  std::shared_ptr<const Config> config;
  if (const Problem problem = CachedConfig(ConfigText(host, fapl), &config)) return problem;
  if (config->mode != Mode::kRemote && config->mode != Mode::kReader) return std::nullopt;
  const std::optional<std::string> remote_name =
      MirrorName(*config, RealPathOfMissing(name), HostName());
  if (!remote_name) return std::nullopt;
  return "it is " + *remote_name + " on a server; remove it with: h5mirror rm " + *remote_name;
}

herr_t CloseFile(OpenFile* file) {
  const std::unique_ptr<OpenFile> owned(file);
  if (!file->remote_key.empty()) return CloseRemote(*file);
  if (IsReader(*file)) return file->under->cls->close(file->under);
  RemoveOpenFile(file->key);
  if (IsEmbedded(*file)) return file->under->cls->close(file->under);
  const herr_t put = file->buffered ? file->buffered->BeforeClose() : 0;
  file->buffered.reset();
  if (file->mirror) file->mirror->BeforeClose();
  const herr_t result = CloseUnder(*file->host, file->under);
  if (file->mirror) file->mirror->AfterClose();
  return put < 0 ? put : result;
}

}  // namespace h5mirror::vfd
