#include "client_vfd/session/reader_module.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/local_record_json.h"
#include "base/status_macros.h"
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

absl::StatusOr<rpc::VersionSpec> SpecOf(const H5mReaderOpen& open) {
  rpc::VersionSpec spec;
  if (open.number > 0) {
    spec.number = open.number;
  } else if (open.at_ns != 0) {
    spec.at = rpc::TimeSpec{absl::FromUnixNanos(open.at_ns), ""};
  } else if (*open.version != '\0') {
    return rpc::ParseVersionSpec(open.version, absl::LocalTimeZone());
  }
  return spec;
}

// The time at which files that this one leads to are opened; 0: their newest version.
int64_t TimeOfTargets(const H5mReaderOpen& open, const rpc::VersionSpec& spec,
                      const v1::Version& version) {
  if (open.linked != 0) return open.at_ns;
  if (spec.at.has_value()) return absl::ToUnixNanos(spec.at->time);
  const bool newest = spec.number == 0 && spec.tag.empty() && spec.back == 0;
  return newest ? 0 : NanosOf(version.server_time());
}

void Fill(const H5mReaderOpen& open, const rpc::VersionSpec& spec, const Reader& reader,
          H5mReaderInfo* info) {
  const v1::Version& version = reader.version();
  info->version = version.version();
  info->cut = version.cut();
  info->size_bytes = static_cast<uint64_t>(version.size_bytes());
  info->targets_at_ns = TimeOfTargets(open, spec, version);
  std::string text =
      absl::StrCat("version ", version.version(), " of ", open.name, ", of ",
                   rpc::UtcText(absl::FromUnixNanos(NanosOf(version.server_time()))));
  if (spec.at.has_value() && !spec.at->local_text.empty()) {
    absl::StrAppend(&text, " (", spec.at->local_text, " is ", rpc::UtcText(spec.at->time), ")");
  }
  std::snprintf(info->text, sizeof info->text, "%s", text.c_str());
  std::snprintf(info->identity, sizeof info->identity, "%s", reader.identity().c_str());
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
  Fill(open, config.version, *reader, info);
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
