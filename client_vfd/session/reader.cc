#include "client_vfd/session/reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/superblock_image.h"
#include "client_vfd/session/reader_calls.h"
#include "rpc/version_request.h"

namespace h5mirror::vfd {
namespace {

struct Found {
  v1::Version version;
  std::string first_bytes;  // one block or the whole version; empty: not read yet
};

// One call for both, where the server need not look for the version by tag, time or place.
absl::StatusOr<Found> FindAndRead(const ReaderConfig& config) {
  Found found;
  std::string bytes(rpc::BlockCache::kBlockBytes, '\0');
  v1::ReadVersionRequest request;
  request.set_name(config.name);
  request.set_version(config.version.number);
  request.set_length_bytes(bytes.size());
  const auto take = [&](const v1::ReadVersionResponse& answer) -> absl::Status {
    if (!found.version.has_server_time()) found.version = answer.version();
    H5M_RETURN_IF_ERROR(rpc::CheckAnswer(answer, found.version));
    if (answer.offset() > bytes.size() || answer.data().size() > bytes.size() - answer.offset()) {
      return absl::InternalError("the server sent bytes that were not asked for");
    }
    std::memcpy(bytes.data() + answer.offset(), answer.data().data(), answer.data().size());
    return absl::OkStatus();
  };
  H5M_RETURN_IF_ERROR(ReaderCalls::Get().ReadVersion(config.server, request, config.timeout, take));
  bytes.resize(std::min<uint64_t>(bytes.size(), static_cast<uint64_t>(found.version.size_bytes())));
  found.first_bytes = std::move(bytes);
  return found;
}

absl::StatusOr<Found> Find(const ReaderConfig& config) {
  if (config.version.number != 0 || config.version == rpc::VersionSpec()) {
    return FindAndRead(config);
  }
  H5M_ASSIGN_OR_RETURN(
      v1::Version version,
      ReaderCalls::Get().FindVersion(config.server, rpc::FindRequest(config.name, config.version),
                                     config.timeout));
  return Found{std::move(version), ""};
}

rpc::RangeReader RangesFrom(const ReaderConfig& config, const v1::Version& version) {
  return [server = config.server, name = config.name, timeout = config.timeout, version](
             uint64_t offset, uint64_t length, rpc::RangeSink sink) {
    v1::ReadVersionRequest request;
    request.set_name(name);
    request.set_version(version.version());
    request.set_offset(offset);
    request.set_length_bytes(length);
    return ReaderCalls::Get().ReadVersion(
        server, std::move(request), timeout, [&](const v1::ReadVersionResponse& answer) {
          H5M_RETURN_IF_ERROR(rpc::CheckAnswer(answer, version));
          return answer.has_version() ? absl::OkStatus() : sink(answer.offset(), answer.data());
        });
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const ReaderConfig& config) {
  H5M_ASSIGN_OR_RETURN(Found found, Find(config));
  std::string identity = absl::StrCat(found.version.version(), "\n", found.version.cut(), "\n",
                                      config.name, "\n", config.server.target);
  auto reader =
      std::unique_ptr<Reader>(new Reader(config, std::move(found.version), std::move(identity)));
  reader->source_.Preload(std::move(found.first_bytes));
  H5M_RETURN_IF_ERROR(reader->Describe(reader->FindSuperblock()));
  return reader;
}

Reader::Reader(const ReaderConfig& config, v1::Version version, std::string identity)
    : version_(std::move(version)),
      name_(config.name),
      identity_(std::move(identity)),
      source_(identity_, static_cast<uint64_t>(version_.size_bytes()), RangesFrom(config, version_),
              ReaderCalls::Get().Cache(config.cache_bytes)) {}

absl::Status Reader::FindSuperblock() {
  const uint64_t size = source_.size_bytes();
  for (uint64_t offset = 0; offset < size; offset = offset == 0 ? 512 : 2 * offset) {
    std::string bytes(std::min<uint64_t>(kSuperblockImageBytes, size - offset), '\0');
    H5M_RETURN_IF_ERROR(source_.Read(offset, absl::MakeSpan(bytes), rpc::ReadKind::kMetadata));
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kNo) continue;
    patch_offset_ = offset;
    patch_ = ClosedSuperblock(bytes, offset, size).value_or("");
    break;
  }
  return absl::OkStatus();
}

absl::Status Reader::Read(uint64_t offset, absl::Span<char> out, rpc::ReadKind kind) {
  H5M_RETURN_IF_ERROR(Describe(source_.Read(offset, out, kind)));
  const uint64_t from = std::max(offset, patch_offset_);
  const uint64_t to = std::min(offset + out.size(), patch_offset_ + patch_.size());
  if (from < to) {
    std::memcpy(out.data() + (from - offset), patch_.data() + (from - patch_offset_), to - from);
  }
  return absl::OkStatus();
}

absl::Status Reader::Describe(const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(
      status.code(), absl::StrCat("read ", name_, "@", version_.version(), ": ", status.message()));
}

}  // namespace h5mirror::vfd
