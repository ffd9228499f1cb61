#include "sync/download.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/io.h"
#include "sync/head_copy.h"

namespace h5mirror::tools {
namespace {

constexpr int kAttemptsMax = 4;
// Of one call; the contract allows as many.
constexpr size_t kRangesMax = 65536;

absl::Status CheckSum(const std::string& name, int64_t version,
                      const v1::ReadVersionResponse& message) {
  const uint32_t crc = Crc32c(message.data());
  if (crc == message.data_crc32c()) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "read %s@%d at offset %d: checksum 0x%08x != 0x%08x; bytes were damaged on the way, "
      "try again",
      name, version, message.offset(), crc, message.data_crc32c()));
}

// One download, over as many streams as it takes.
class Reader {
 public:
  // `end`: of what is wanted; unset: all of the version from `begin` on.
  Reader(std::string name, uint64_t begin, std::optional<uint64_t> end, Progress& progress,
         PieceSink sink)
      : name_(std::move(name)), end_(end), progress_(progress), sink_(sink), next_(begin) {}

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
  // Asks for what is still missing.
  void Ask(v1::ReadVersionRequest* request) const {
    request->set_offset(next_);
    if (end_) request->set_length_bytes(*end_ - next_);
  }
  bool complete() const { return end_ && next_ == *end_; }

 private:
  absl::Status TakeVersion(const v1::Version& version) {
    version_ = version;
    if (!end_) progress_.set_total_bytes(static_cast<uint64_t>(version.size_bytes()));
    return absl::OkStatus();
  }

  absl::Status Check(const v1::ReadVersionResponse& message) const {
    const uint64_t size = end_.value_or(static_cast<uint64_t>(version_.size_bytes()));
    if (message.offset() < next_ || message.offset() > size ||
        message.data().size() > size - message.offset()) {
      return absl::DataLossError(StrCat("read ", name_, "@", version_.version(),
                                        ": the server sent ", message.data().size(), " bytes at ",
                                        message.offset(), ", after ", next_, ", in a version of ",
                                        size, " bytes; check the server with h5mirror doctor"));
    }
    return CheckSum(name_, version_.version(), message);
  }

  const std::string name_;
  const std::optional<uint64_t> end_;
  Progress& progress_;
  PieceSink sink_;
  v1::Version version_;
  uint64_t next_;  // one past the last byte taken
};

// One download of many ranges.
class RangesReader {
 public:
  RangesReader(std::string name, absl::Span<const Extent> ranges, Progress& progress,
               PieceSink sink)
      : name_(std::move(name)),
        ranges_(ranges.begin(), ranges.end()),
        progress_(progress),
        sink_(sink) {}

  absl::Status Take(const v1::ReadVersionResponse& message) {
    if (message.has_version()) version_ = message.version();
    H5M_RETURN_IF_ERROR(CheckSum(name_, version_.version(), message));
    std::string_view left = message.data();
    for (const v1::ByteRange& piece : message.pieces()) {
      H5M_RETURN_IF_ERROR(Check(piece, left.size()));
      H5M_RETURN_IF_ERROR(sink_(piece.offset(), left.substr(0, piece.length_bytes())));
      left.remove_prefix(piece.length_bytes());
      Extent& wanted = ranges_[next_];
      wanted = {wanted.offset + piece.length_bytes(), wanted.length - piece.length_bytes()};
      progress_.Update(wanted.offset);
      if (wanted.length == 0) ++next_;
    }
    return absl::OkStatus();
  }

  const v1::Version& version() const { return version_; }
  void Ask(v1::ReadVersionRequest* request) const {
    request->clear_ranges();
    for (size_t i = next_; i < ranges_.size(); ++i) {
      v1::ByteRange& range = *request->add_ranges();
      range.set_offset(ranges_[i].offset);
      range.set_length_bytes(ranges_[i].length);
    }
  }
  bool complete() const { return next_ == ranges_.size(); }

 private:
  absl::Status Check(const v1::ByteRange& piece, uint64_t bytes_left) const {
    if (!complete() && piece.offset() == ranges_[next_].offset && piece.length_bytes() > 0 &&
        piece.length_bytes() <= std::min(ranges_[next_].length, bytes_left)) {
      return absl::OkStatus();
    }
    return absl::DataLossError(StrCat("read ", name_, "@", version_.version(), ": the server sent ",
                                      piece.length_bytes(), " bytes at ", piece.offset(),
                                      ", which were not asked for next; check the server with "
                                      "h5mirror doctor"));
  }

  const std::string name_;
  std::vector<Extent> ranges_;  // from next_ on: what is missing
  Progress& progress_;
  PieceSink sink_;
  v1::Version version_;
  size_t next_ = 0;
};

// Reads over as many streams as it takes.
template <typename Reader>
absl::Status Run(rpc::Client& client, const std::string& name, int64_t version, Reader& reader) {
  v1::ReadVersionRequest request;
  request.set_name(name);
  request.set_version(version);
  absl::Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) absl::SleepFor(absl::Milliseconds(200 << attempt));
    reader.Ask(&request);
    status = client.ReadVersion(
        request, [&](const v1::ReadVersionResponse& message) { return reader.Take(message); });
    if (!absl::IsUnavailable(status) || reader.complete()) break;
    // The newest may be another one by now: go on with the one that was begun.
    if (reader.version().version() > 0) request.set_version(reader.version().version());
  }
  if (!reader.complete()) H5M_RETURN_IF_ERROR(status);
  if (reader.version().version() == 0) {
    return absl::DataLossError(StrCat("read ", name, ": the server named no version"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Version> Download(rpc::Client& client, const std::string& name, int64_t version,
                                     Progress& progress, PieceSink sink) {
  Reader reader(name, 0, std::nullopt, progress, sink);
  H5M_RETURN_IF_ERROR(Run(client, name, version, reader));
  return reader.version();
}

absl::Status DownloadRange(rpc::Client& client, const std::string& name, int64_t version,
                           Extent range, Progress& progress, PieceSink sink) {
  Reader reader(name, range.offset, range.end(), progress, sink);
  return Run(client, name, version, reader);
}

absl::StatusOr<std::string> DownloadBytes(rpc::Client& client, const std::string& name,
                                          int64_t version, Extent range, Progress& progress) {
  std::string bytes(range.length, '\0');
  H5M_RETURN_IF_ERROR(DownloadRange(client, name, version, range, progress,
                                    [&](uint64_t offset, std::string_view data) {
                                      bytes.replace(offset - range.offset, data.size(), data);
                                      return absl::OkStatus();
                                    }));
  return bytes;
}

absl::Status DownloadRanges(rpc::Client& client, const std::string& name, int64_t version,
                            absl::Span<const Extent> ranges, Progress& progress, PieceSink sink) {
  for (; !ranges.empty(); ranges.remove_prefix(std::min(kRangesMax, ranges.size()))) {
    RangesReader reader(name, ranges.subspan(0, kRangesMax), progress, sink);
    H5M_RETURN_IF_ERROR(Run(client, name, version, reader));
    if (!reader.complete()) {
      return absl::DataLossError(
          StrCat("read ", name, "@", version, ": the server did not send all that was asked for"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Version> DownloadToFile(rpc::Client& client, const std::string& name,
                                           int64_t version, Progress& progress, int fd,
                                           const std::string& path) {
  H5M_ASSIGN_OR_RETURN(const std::optional<v1::Version> copied,
                       CopyFromHead(client, name, version, progress, fd, path));
  if (copied) return *copied;
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
