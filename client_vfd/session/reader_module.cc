#include "client_vfd/session/reader_module.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/local_record_json.h"
#include "base/status_macros.h"
#include "client_vfd/session/opened_version.h"
#include "client_vfd/session/reader.h"

namespace h5mirror::vfd {
namespace {

Reader* Of(H5mReader* reader) { return reinterpret_cast<Reader*>(reader); }

// What a program that looks at errno would expect.
int ErrnoOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return ENOENT;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return EACCES;
    case absl::StatusCode::kInvalidArgument:
      return EINVAL;
    case absl::StatusCode::kUnavailable:
      return ECONNREFUSED;
    case absl::StatusCode::kDeadlineExceeded:
      return ETIMEDOUT;
    default:
      return EIO;
  }
}

int Fail(const absl::Status& status, char* error, size_t error_size) {
  std::snprintf(error, error_size, "%s", std::string(status.message()).c_str());
  return ErrnoOf(status);
}

int64_t NanosOf(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1'000'000'000 + time.nanos();
}

OpenedVersion OpenedBy(const Reader& reader) {
  const v1::Version& version = reader.version();
  return {version.version(), version.cut(), static_cast<uint64_t>(version.size_bytes()),
          absl::FromUnixNanos(NanosOf(version.server_time())), reader.identity()};
}

absl::StatusOr<std::unique_ptr<Reader>> Start(const H5mReaderOpen& open, H5mReaderInfo* info) {
  LocalRecord record;
  record.name = open.name;
  if (!RecordToJson(record).ok()) {  // Names travel as UTF-8.
    return absl::InvalidArgumentError("its name is not UTF-8");
  }
  ReaderConfig config;
  H5M_ASSIGN_OR_RETURN(config.version, SpecOf(open));
  rpc::ClientSettings settings;
  if (*open.server != '\0') settings.server = open.server;
  if (*open.ca != '\0') settings.ca = open.ca;
  if (*open.token != '\0') settings.token = open.token;
  H5M_ASSIGN_OR_RETURN(config.server, rpc::ResolveClientOptions(settings));
  config.name = open.name;
  config.timeout = absl::Milliseconds(open.timeout_ms);
  config.cache_bytes = open.cache_bytes;
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<Reader> reader, Reader::Open(config));
  Describe(open, config.version, OpenedBy(*reader), info);
  return reader;
}

}  // namespace

H5mReader* ReaderOpen(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                      size_t error_size) {
  try {
    absl::StatusOr<std::unique_ptr<Reader>> reader = Start(*open, info);
    if (reader.ok()) return reinterpret_cast<H5mReader*>(reader->release());
    info->error_number = Fail(reader.status(), error, error_size);
  } catch (const std::exception& thrown) {
    info->error_number = ENOMEM;
    std::snprintf(error, error_size, "%s", thrown.what());
  }
  return nullptr;
}

int ReaderRead(H5mReader* reader, uint64_t offset, void* out, size_t size, int raw, char* error,
               size_t error_size) {
  try {
    const absl::Status status =
        Of(reader)->Read(offset, {static_cast<char*>(out), size},
                         raw != 0 ? rpc::ReadKind::kRaw : rpc::ReadKind::kMetadata);
    return status.ok() ? 0 : Fail(status, error, error_size);
  } catch (const std::exception& thrown) {
    std::snprintf(error, error_size, "%s", thrown.what());
    return ENOMEM;
  }
}

void ReaderClose(H5mReader* reader) { delete Of(reader); }

}  // namespace h5mirror::vfd
