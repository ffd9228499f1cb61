#include "client_vfd/plugin/modes/remote_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/modes/descriptor_io.h"

namespace h5mirror::vfd {
namespace {

constexpr char kForked[] =
    "the process was forked after it was opened with mode=remote; write it in the parent, or open "
    "it again in the child, when the parent has closed it";

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

}  // namespace

RemoteFile::RemoteFile(const HostLibrary& host, std::shared_ptr<const Config> config,
                       ReaderTarget target, std::unique_ptr<ReaderFile> cut)
    : UnderFile(kCommonFeatures | H5FD_FEAT_SUPPORTS_SWMR_IO),
      host_(host),
      config_(std::move(config)),
      target_(std::move(target)),
      cut_(std::move(cut)),
      fork_generation_(ForkGeneration()) {
  if (cut_ == nullptr) return;
  base_cut_ = cut_->info().cut;
  cut_end_ = eof_ = cut_->info().size_bytes;
}

herr_t RemoteFile::FailRead(int error_number, const std::string& error) const {
  PushReadErrno(host_, target_.given_name, error_number, error);
  return -1;
}

herr_t RemoteFile::FailWrite(int error_number, const std::string& error) const {
  PushWriteErrno(host_, target_.given_name, error_number, error);
  return -1;
}

std::string RemoteFile::SpoolProblem(const char* what, int error_number) const {
  return "the spool in " + SpoolDirectory(*config_) + ": " + what + ": " +
         std::strerror(error_number) + "; spool= names another directory";
}

int RemoteFile::Spool(std::string* error) {
  if (spool_.valid()) return spool_.get();
  OwnedFd spool(OpenNameless(SpoolDirectory(*config_)));
  // The spool is as long as the file, because the session takes the file's size from it.
  if (!spool.valid() || ftruncate(spool.get(), static_cast<off_t>(eof_)) < 0) {
    *error = SpoolProblem("make", errno);
    return -1;
  }
  spool_ = std::move(spool);
  return spool_.get();
}

bool RemoteFile::OpenNewerCut() {
  if (InForkedChild()) return false;
  ReaderTarget target = target_;
  target.root = target.parent = nullptr;  // The newest one, or an error.
  const QuietErrors quiet(host_.api);
  const KeepErrors keep(host_.api);
  std::unique_ptr<ReaderFile> newer = ReaderFile::Open(host_, *config_, std::move(target));
  if (newer == nullptr) return false;
  const int64_t cut = newer->info().cut;
  const int64_t own = newest_cut_ ? newest_cut_() : 0;
  const bool fits = cut == base_cut_ || (cut > base_cut_ && cut <= own);
  if (fits) cut_ = std::move(newer);
  return fits;
}

herr_t RemoteFile::ReadFromCut(H5FD_mem_t type, haddr_t addr, size_t size, char* out) {
  const uint64_t inside = addr < cut_end_ ? std::min<uint64_t>(size, cut_end_ - addr) : 0;
  std::memset(out + inside, 0, size - inside);
  if (inside == 0) return 0;
  std::string error;
  int failed = cut_->ReadCut(type, addr, inside, out, &error);
  if (failed == ESTALE && OpenNewerCut()) {
    failed = cut_->ReadCut(type, addr, inside, out, &error);
  }
  return failed == 0 ? 0 : FailRead(failed, error);
}

herr_t RemoteFile::ReadFromSpool(haddr_t addr, size_t size, char* out) const {
  const Transferred read = ReadAt(spool_.get(), addr, size, out);
  if (read.bytes == size) return 0;
  const int error_number = read.error_number != 0 ? read.error_number : EIO;
  return FailRead(error_number, SpoolProblem("read", error_number));
}

herr_t RemoteFile::Read(H5FD_mem_t type, hid_t, haddr_t addr, size_t size, void* buffer) {
  auto* out = static_cast<char*>(buffer);
  const haddr_t end = addr + size;
  while (addr < end) {
    const WrittenBytes::Run run = written_.RunFrom(addr, end);
    const size_t length = run.end - run.offset;
    const herr_t result =
        run.is_written ? ReadFromSpool(addr, length, out) : ReadFromCut(type, addr, length, out);
    if (result < 0) return result;
    addr += length;
    out += length;
  }
  return 0;
}

herr_t RemoteFile::Write(H5FD_mem_t, hid_t, haddr_t addr, size_t size, const void* buffer) {
  if (InForkedChild()) return FailWrite(EIO, kForked);
  const Transferred done = WriteAt(spool_.get(), addr, size, static_cast<const char*>(buffer));
  if (done.bytes > 0) {
    written_.Add(addr, done.bytes);
    eof_ = std::max<haddr_t>(eof_, addr + done.bytes);
  }
  if (done.bytes == size) return 0;
  const int error_number = done.error_number != 0 ? done.error_number : EIO;
  return FailWrite(error_number, SpoolProblem("write", error_number));
}

herr_t RemoteFile::Truncate(hid_t, hbool_t) {
  if (eoa() == eof_) return 0;
  if (InForkedChild()) return FailWrite(EIO, kForked);
  if (ftruncate(spool_.get(), static_cast<off_t>(eoa())) < 0) {
    const int error_number = errno;
    return FailWrite(error_number, SpoolProblem("truncate", error_number));
  }
  written_.TruncateTo(eoa());
  cut_end_ = std::min<uint64_t>(cut_end_, eoa());
  eof_ = eoa();
  return 0;
}

}  // namespace h5mirror::vfd
