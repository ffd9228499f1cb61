#include "tools/download.h"

#include <errno.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/io.h"

namespace h5mirror::tools {
namespace {

constexpr int kAttemptsMax = 4;

// One download, over as many streams as it takes.
class Reader {
 public:
  Reader(std::string name, Progress& progress, PieceSink sink)
      : name_(std::move(name)), progress_(progress), sink_(sink) {}

  absl::Status Take(const v1::ReadVersionResponse& message) {
    if (message.has_version()) H5M_RETURN_IF_ERROR(TakeVersion(message.version()));
    if (message.data().empty()) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(Check(message));
    H5M_RETURN_IF_ERROR(sink_(message.offset(), message.data()));
    next_ = message.offset() + message.data().size();
    progress_.Update(next_);
    return absl::OkStatus();
  }

  const v1::Version& version() const { return version_; }
  uint64_t next() const { return next_; }

 private:
  absl::Status TakeVersion(const v1::Version& version) {
    version_ = version;
    progress_.set_total_bytes(static_cast<uint64_t>(version.size_bytes()));
    return absl::OkStatus();
  }

  absl::Status Check(const v1::ReadVersionResponse& message) const {
    const auto size = static_cast<uint64_t>(version_.size_bytes());
    if (message.offset() < next_ || message.offset() > size ||
        message.data().size() > size - message.offset()) {
      return absl::DataLossError(StrCat("read ", name_, "@", version_.version(),
                                        ": the server sent ", message.data().size(), " bytes at ",
                                        message.offset(), ", after ", next_, ", in a version of ",
                                        size, " bytes; check the server with h5mirror doctor"));
    }
    const uint32_t crc = Crc32c(message.data());
    if (crc != message.data_crc32c()) {
      return absl::DataLossError(absl::StrFormat(
          "read %s@%d at offset %d: checksum 0x%08x != 0x%08x; bytes were damaged on the way, "
          "try again",
          name_, version_.version(), message.offset(), crc, message.data_crc32c()));
    }
    return absl::OkStatus();
  }

  const std::string name_;
  Progress& progress_;
  PieceSink sink_;
  v1::Version version_;
  uint64_t next_ = 0;  // one past the last byte taken
};

}  // namespace

absl::StatusOr<v1::Version> Download(rpc::Client& client, const std::string& name, int64_t version,
                                     Progress& progress, PieceSink sink) {
  Reader reader(name, progress, sink);
  v1::ReadVersionRequest request;
  request.set_name(name);
  request.set_version(version);
  absl::Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) absl::SleepFor(absl::Milliseconds(200 << attempt));
    request.set_offset(reader.next());
    status = client.ReadVersion(
        request, [&](const v1::ReadVersionResponse& message) { return reader.Take(message); });
    if (!absl::IsUnavailable(status)) break;
    // The newest may be another one by now: go on with the one that was begun.
    if (reader.version().version() > 0) request.set_version(reader.version().version());
  }
  H5M_RETURN_IF_ERROR(status);
  if (reader.version().version() == 0) {
    return absl::DataLossError(StrCat("read ", name, ": the server named no version"));
  }
  return reader.version();
}

absl::StatusOr<v1::Version> DownloadToFile(rpc::Client& client, const std::string& name,
                                           int64_t version, Progress& progress, int fd,
                                           const std::string& path) {
  H5M_ASSIGN_OR_RETURN(v1::Version result, Download(client, name, version, progress,
                                                    [&](uint64_t offset, std::string_view data) {
                                                      return PwriteAll(fd, offset, data, path);
                                                    }));
  if (ftruncate(fd, result.size_bytes()) != 0) {
    return ErrnoToStatus(errno, StrCat("set the size of ", path));
  }
  return result;
}

}  // namespace h5mirror::tools
