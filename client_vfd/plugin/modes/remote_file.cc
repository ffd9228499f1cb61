#include "client_vfd/plugin/modes/remote_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client_vfd/plugin/host/fork_guard.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/writes/written_bytes.h"

namespace h5mirror::vfd {
namespace {

// Linux transfers at most this much in one call.
constexpr size_t kIoBytesMax = 0x7ffff000;
constexpr char kForked[] =
    "the process was forked after it was opened with mode=remote; write it in the parent, or open "
    "it again in the child, when the parent has closed it";

struct RemoteFile {
  H5FD_t base{};
  const HostLibrary* host = nullptr;
  std::shared_ptr<const Config> config;
  ReaderTarget target;
  H5FD_t* cut = nullptr;  // of ReaderClass(); null: the file began as an empty one
  int64_t base_cut = 0;
  uint64_t cut_end = 0;  // as far as bytes that were not written are those of `cut`
  std::function<int64_t()> newest_cut;
  WrittenBytes written;
  int fd = -1;
  haddr_t eof = 0;
  haddr_t eoa = 0;
  unsigned fork_generation = 0;

  ~RemoteFile() {
    if (fd >= 0) close(fd);
    if (cut != nullptr) cut->cls->close(cut);
  }
  bool InForkedChild() const { return ForkGeneration() != fork_generation; }
};

RemoteFile* Of(H5FD_t* file) { return reinterpret_cast<RemoteFile*>(file); }
const RemoteFile* Of(const H5FD_t* file) { return reinterpret_cast<const RemoteFile*>(file); }

herr_t FailWrite(const RemoteFile& file, int error_number, const std::string& error) {
  PushWriteErrno(*file.host, file.target.given_name, error_number, error);
  return -1;
}

std::string SpoolDirectory(const Config& config) {
  if (!config.spool.empty()) return config.spool;
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory == '/' ? directory : "/tmp";
}

int OpenNameless(const std::string& directory) {
  const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
  // A file system, or a kernel, without.
  std::string path = directory + "/h5mirror-spool-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

std::string SpoolProblem(const RemoteFile& file, const char* what) {
  return "the spool in " + SpoolDirectory(*file.config) + ": " + what + ": " +
         std::strerror(errno) + "; spool= names another directory";
}

herr_t Close(H5FD_t* file) {
  delete Of(file);
  return 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_SUPPORTS_SWMR_IO |
           H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; }
haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eof; }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Of(file)->eoa = address;
  return 0;
}

// Goes on at a cut of the session that writes the file. False: there is none, and `file.cut` is as
// it was.
bool OpenNewerCut(RemoteFile& file) {
  if (file.InForkedChild()) return false;
  ReaderTarget target = file.target;
  target.root = target.parent = nullptr;  // The newest one, or an error.
  const QuietErrors quiet(file.host->api);
  const KeepErrors keep(file.host->api);
  H5FD_t* newer = OpenReader(*file.host, *file.config, std::move(target));
  if (newer == nullptr) return false;
  const int64_t cut = InfoOf(newer).cut;
  const int64_t own = file.newest_cut ? file.newest_cut() : 0;
  const bool fits = cut == file.base_cut || (cut > file.base_cut && cut <= own);
  H5FD_t* const old = fits ? std::exchange(file.cut, newer) : newer;
  old->cls->close(old);
  return fits;
}

herr_t ReadFromCut(RemoteFile& file, H5FD_mem_t type, haddr_t address, size_t size, char* buffer) {
  const uint64_t inside =
      address < file.cut_end ? std::min<uint64_t>(size, file.cut_end - address) : 0;
  std::memset(buffer + inside, 0, size - inside);
  if (inside == 0) return 0;
  std::string error;
  int failed = ReadCut(file.cut, type, address, inside, buffer, &error);
  if (failed == ESTALE && OpenNewerCut(file)) {
    failed = ReadCut(file.cut, type, address, inside, buffer, &error);
  }
  if (failed == 0) return 0;
  PushReadErrno(*file.host, file.target.given_name, failed, error);
  return -1;
}

herr_t ReadFromSpool(const RemoteFile& file, haddr_t address, size_t size, char* buffer) {
  while (size > 0) {
    const ssize_t n =
        pread(file.fd, buffer, std::min(size, kIoBytesMax), static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error_number = n < 0 ? errno : EIO;
      errno = error_number;
      PushReadErrno(*file.host, file.target.given_name, error_number, SpoolProblem(file, "read"));
      return -1;
    }
    buffer += n;
    address += static_cast<haddr_t>(n);
    size -= static_cast<size_t>(n);
  }
  return 0;
}

herr_t Read(H5FD_t* base, H5FD_mem_t type, hid_t, haddr_t address, size_t size, void* buffer) {
  RemoteFile& file = *Of(base);
  auto* out = static_cast<char*>(buffer);
  const haddr_t end = address + size;
  while (address < end) {
    const WrittenBytes::Run run = file.written.RunFrom(address, end);
    const size_t length = run.end - run.offset;
    const herr_t result = run.is_written ? ReadFromSpool(file, address, length, out)
                                         : ReadFromCut(file, type, address, length, out);
    if (result < 0) return result;
    address += length;
    out += length;
  }
  return 0;
}

herr_t Write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  RemoteFile& file = *Of(base);
  if (file.InForkedChild()) return FailWrite(file, EIO, kForked);
  const auto* in = static_cast<const char*>(buffer);
  while (size > 0) {
    const ssize_t n = pwrite(file.fd, in, std::min(size, kIoBytesMax), static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailWrite(file, errno, SpoolProblem(file, "write"));
    file.written.Add(address, static_cast<uint64_t>(n));
    in += n;
    address += static_cast<haddr_t>(n);
    size -= static_cast<size_t>(n);
    file.eof = std::max(file.eof, address);
  }
  return 0;
}

herr_t Truncate(H5FD_t* base, hid_t, hbool_t) {
  RemoteFile& file = *Of(base);
  if (file.eoa == file.eof) return 0;
  if (file.InForkedChild()) return FailWrite(file, EIO, kForked);
  if (ftruncate(file.fd, static_cast<off_t>(file.eoa)) < 0) {
    return FailWrite(file, errno, SpoolProblem(file, "truncate"));
  }
  file.written.TruncateTo(file.eoa);
  file.cut_end = std::min<uint64_t>(file.cut_end, file.eoa);
  file.eof = file.eoa;
  return 0;
}

H5FD_class_t MakeClass() {
  H5FD_class_t made{};
  made.version = H5FD_CLASS_VERSION;
  made.name = "h5mirror_remote";
  made.close = Close;
  made.query = Query;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.read = Read;
  made.write = Write;
  made.truncate = Truncate;
  return made;
}

}  // namespace

H5FD_t* MakeRemote(const HostLibrary& host, std::shared_ptr<const Config> config,
                   const ReaderTarget& target, H5FD_t* cut) {
  auto file = std::make_unique<RemoteFile>();
  file->base.cls = RemoteClass();
  file->host = &host;
  file->config = std::move(config);
  file->target = target;
  file->cut = cut;
  file->fork_generation = ForkGeneration();
  if (cut != nullptr) {
    file->base_cut = InfoOf(cut).cut;
    file->cut_end = file->eof = InfoOf(cut).size_bytes;
  }
  return &file.release()->base;
}

const H5FD_class_t* RemoteClass() {
  static const H5FD_class_t remote_class = MakeClass();
  return &remote_class;
}

int SpoolOf(H5FD_t* base, std::string* error) {
  RemoteFile& file = *Of(base);
  if (file.fd >= 0) return file.fd;
  const int fd = OpenNameless(SpoolDirectory(*file.config));
  // As long as the file: the session tells the server so.
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(file.eof)) < 0) {
    *error = SpoolProblem(file, "make");
    if (fd >= 0) close(fd);
    return -1;
  }
  file.fd = fd;
  return fd;
}

int64_t BaseCutOf(const H5FD_t* file) { return Of(file)->base_cut; }

void SetNewestCut(H5FD_t* file, std::function<int64_t()> newest) {
  Of(file)->newest_cut = std::move(newest);
}

}  // namespace h5mirror::vfd
