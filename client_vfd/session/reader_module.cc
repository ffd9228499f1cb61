#include "client_vfd/session/reader_module.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "client_vfd/session/c_face.h"
#include "client_vfd/session/opened_version.h"
#include "client_vfd/session/reader.h"
#include "client_vfd/session/reader_calls.h"
#include "rpc/timestamp.h"

namespace h5mirror::vfd {
namespace {

Reader* Of(H5mReader* reader) { return reinterpret_cast<Reader*>(reader); }

// Nullopt: a version is wanted.
std::optional<LiveCut> LiveOf(const H5mReaderOpen& open) {
  const bool is_root = open.linked == 0 && *open.version == '\0';
  if (!is_root && (open.live == 0 || open.number != 0)) return std::nullopt;
  LiveCut live;
  if (is_root) return live;
  live.cut = open.cut;
  if (open.at_ns != 0) live.not_after = absl::FromUnixNanos(open.at_ns);
  live.root_id.emplace();
  std::copy(std::begin(open.root_id), std::end(open.root_id), live.root_id->begin());
  return live;
}

// The files that a live one leads to are opened as of the moment when the first was opened.
void DescribeTargets(const H5mReaderOpen& open, const Reader& reader, H5mReaderInfo* info) {
  info->targets_live = 1;
  info->targets_at_ns = open.linked != 0 ? open.at_ns : absl::ToUnixNanos(reader.open_time());
  const SnapshotPins::Id& id = reader.pins()->id();
  std::copy(id.begin(), id.end(), info->root_id);
}

void DescribeWriter(const Reader& reader, H5mReaderInfo* info) {
  const std::string& id = reader.writer_session_id();
  if (id.size() == sizeof info->writer_session_id) {
    std::copy(id.begin(), id.end(), info->writer_session_id);
  }
  info->is_swmr = reader.is_swmr() ? 1 : 0;
}

OpenedVersion OpenedBy(const Reader& reader) {
  const v1::Version& version = reader.version();
  return {version.version(), version.cut(), static_cast<uint64_t>(version.size_bytes()),
          rpc::FromProto(version.server_time()), reader.identity()};
}

absl::StatusOr<std::unique_ptr<Reader>> Start(const H5mReaderOpen& open, H5mReaderInfo* info) {
  if (!IsUtf8(open.name)) return absl::InvalidArgumentError("its name is not UTF-8");
  ReaderConfig config;
  config.live = LiveOf(open);
  if (!config.live) {
    H5M_ASSIGN_OR_RETURN(config.version, SpecOf(open));
  }
  H5M_ASSIGN_OR_RETURN(static_cast<rpc::ClientOptions&>(config.server),
                       ServerOf(open.server, open.ca, open.token));
  config.server.agent = open.agent;
  config.name = open.name;
  config.timeout = absl::Milliseconds(open.timeout_ms);
  config.cache_bytes = open.cache_bytes;
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<Reader> reader, Reader::Open(config));
  Describe(open, config.version, OpenedBy(*reader), info);
  if (config.live && reader->pins() != nullptr) DescribeTargets(open, *reader, info);
  DescribeWriter(*reader, info);
  return reader;
}

// The newest cut: after the time has passed it may be the old one; 0: none yet.
absl::StatusOr<int64_t> AwaitCut(const H5mWait& wait) {
  // The limits of one call, so that a hanging server is noticed.
  constexpr absl::Duration kCallMax = absl::Minutes(1);
  constexpr absl::Duration kAnswerMax = absl::Seconds(5);
  ReaderServer server;
  H5M_ASSIGN_OR_RETURN(static_cast<rpc::ClientOptions&>(server),
                       ServerOf(wait.server, wait.ca, wait.token));
  v1::WaitForCutRequest request;
  request.set_name(wait.name);
  request.set_after_cut(wait.after_cut);
  const absl::Time until = wait.timeout_ms < 0 ? absl::InfiniteFuture()
                                               : absl::Now() + absl::Milliseconds(wait.timeout_ms);
  for (;;) {
    const absl::Duration left = std::max(until - absl::Now(), absl::ZeroDuration());
    const absl::Duration part = std::min(left, kCallMax);
    request.mutable_timeout()->set_seconds(part / absl::Seconds(1));
    request.mutable_timeout()->set_nanos(
        static_cast<int32_t>(part % absl::Seconds(1) / absl::Nanoseconds(1)));
    H5M_ASSIGN_OR_RETURN(const v1::WaitForCutResponse answer,
                         ReaderCalls::Get().WaitForCut(server, request, part + kAnswerMax));
    if (answer.cut() > wait.after_cut || left == part) return answer.cut();
  }
}

}  // namespace

H5mReader* ReaderOpen(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                      size_t error_size) {
  H5mReader* opened = nullptr;
  const int failed = Guarded(error, error_size, [&] {
    absl::StatusOr<std::unique_ptr<Reader>> reader = Start(*open, info);
    if (reader.ok()) {
      opened = reinterpret_cast<H5mReader*>(reader->release());
      return 0;
    }
    const int number = Tell(reader.status(), error, error_size);
    // Not ENOENT: HDF5 reads a missing source file of a virtual dataset as fill values.
    return open->linked != 0 && absl::IsOutOfRange(reader.status()) ? ESTALE : number;
  });
  if (opened == nullptr) info->error_number = failed;
  return opened;
}

int ReaderRead(H5mReader* reader, uint64_t offset, void* out, size_t size, int raw, char* error,
               size_t error_size) {
  return Guarded(error, error_size, [&] {
    const absl::Status status =
        Of(reader)->Read(offset, {static_cast<char*>(out), size},
                         raw != 0 ? rpc::ReadKind::kRaw : rpc::ReadKind::kMetadata);
    if (status.ok()) return 0;
    const int number = Tell(status, error, error_size);
    return absl::IsOutOfRange(status) ? ESTALE : number;  // It was there when it was opened.
  });
}

void ReaderClose(H5mReader* reader) { delete Of(reader); }

int WaitForCut(const H5mWait* wait, int64_t* cut, char* error, size_t error_size) {
  return Guarded(error, error_size, [&] {
    *cut = 0;
    const absl::StatusOr<int64_t> newest = AwaitCut(*wait);
    if (!newest.ok()) return Tell(newest.status(), error, error_size);
    *cut = *newest;
    return *newest > wait->after_cut ? 0 : ETIMEDOUT;
  });
}

}  // namespace h5mirror::vfd
