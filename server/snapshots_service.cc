#include "server/snapshots_service.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/convert.h"
#include "server/send_metadata.h"

namespace h5mirror::server {
namespace {

// Bytes of one message.
constexpr uint64_t kPartBytes = 512 << 10;
constexpr size_t kReaderIdBytes = 16;
constexpr size_t kFileIdBytes = 16;
constexpr int kWorkers = 2;

absl::Status CheckRequest(const v1::ReadSnapshotRequest& request) {
  H5M_RETURN_IF_ERROR(store::CheckName(request.name()));
  if (request.cut() < 0) {
    return absl::InvalidArgumentError(StrCat("cut ", request.cut(), " is negative"));
  }
  if (request.reader_id().size() != kReaderIdBytes) {
    return absl::InvalidArgumentError(
        StrCat("reader_id has ", request.reader_id().size(), " bytes, not ", kReaderIdBytes));
  }
  if (!request.file_id().empty() && request.file_id().size() != kFileIdBytes) {
    return absl::InvalidArgumentError(
        StrCat("file_id has ", request.file_id().size(), " bytes, not ", kFileIdBytes));
  }
  return absl::OkStatus();
}

}  // namespace

class SnapshotsService::Source {
 public:
  explicit Source(SnapshotTable::Held held) : snapshot_(std::move(held.snapshot)) {
    proto_.set_file_id(held.file_id.data(), held.file_id.size());
    const store::CutInfo& info = snapshot_->info();
    size_bytes_ = info.size_bytes;
    proto_.set_cut(info.cut);
    proto_.set_size_bytes(static_cast<int64_t>(info.size_bytes));
    *proto_.mutable_server_time() = ToProto(info.time);
    proto_.set_version(info.version);
    proto_.set_generation(info.generation);
  }
  Source(std::unique_ptr<store::VersionReader> version, const store::FileId& file_id)
      : version_(std::move(version)) {
    proto_.set_file_id(file_id.data(), file_id.size());
    const store::VersionInfo& info = version_->info();
    size_bytes_ = info.size_bytes;
    proto_.set_cut(info.cut);
    proto_.set_size_bytes(static_cast<int64_t>(info.size_bytes));
    *proto_.mutable_server_time() = ToProto(info.server_time);
    proto_.set_version(info.version);
    proto_.set_generation(info.generation);
  }

  v1::Snapshot& proto() { return proto_; }
  uint64_t size_bytes() const { return size_bytes_; }
  absl::StatusOr<Extent> NextData(uint64_t offset) {
    return snapshot_ != nullptr ? snapshot_->NextData(offset) : version_->NextData(offset);
  }
  absl::Status Read(uint64_t offset, absl::Span<char> out) {
    return snapshot_ != nullptr ? snapshot_->Read(offset, out) : version_->Read(offset, out);
  }
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) {
    if (version_ != nullptr) return version_->ReadRanges(ranges, out);
    for (const Extent& range : ranges) {
      H5M_RETURN_IF_ERROR(snapshot_->Read(range.offset, out.first(range.length)));
      out.remove_prefix(range.length);
    }
    return absl::OkStatus();
  }

 private:
  const SnapshotTable::SnapshotPtr snapshot_;
  const std::unique_ptr<store::VersionReader> version_;
  v1::Snapshot proto_;
  uint64_t size_bytes_ = 0;
};

SnapshotsService::SnapshotsService(const ServiceEnvironment& environment, absl::Duration keep,
                                   absl::Duration tick)
    : environment_(environment),
      recent_(environment.clock),
      table_(environment.clock, keep),
      linked_(environment.clock, table_,
              [this](const std::string& name) { return OpenFile(name); }),
      board_(environment.clock),
      publisher_(environment, tick),
      workers_(kWorkers, "wait for cut") {
  environment_.store.SetCutListener([this](const std::string& name, store::CutNumber cut) {
    table_.OnCut(name, cut);
    linked_.OnCut(name);
    board_.OnCut(name);
    publisher_.OnChange(name);
  });
  environment_.leases.SetOnFree([this](const std::string& name) {
    board_.OnCut(name);
    publisher_.OnChange(name);
  });
}

SnapshotsService::~SnapshotsService() {
  environment_.store.SetCutListener(nullptr);
  environment_.leases.SetOnFree(nullptr);
}

void SnapshotsService::OnTimer() {
  recent_.OnTimer();
  table_.OnTimer();
  linked_.OnTimer();
  board_.OnTimer();
}

void SnapshotsService::Stop() {
  board_.Stop();
  linked_.Stop();
  table_.Clear();
  recent_.Clear();
}

absl::StatusOr<std::shared_ptr<store::File>> SnapshotsService::OpenFile(const std::string& name) {
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<store::File> file, environment_.store.OpenFile(name));
  recent_.Keep(file);
  return file;
}

absl::StatusOr<std::unique_ptr<SnapshotsService::Source>> SnapshotsService::OpenNewest(
    const v1::ReadSnapshotRequest& request) {
  H5M_ASSIGN_OR_RETURN(const auto file, OpenFile(request.name()));
  linked_.Settle();
  H5M_ASSIGN_OR_RETURN(auto snapshot, table_.Open(*file, request.reader_id()));
  return SourceOf(*file, std::move(snapshot));
}

absl::StatusOr<std::unique_ptr<SnapshotsService::Source>> SnapshotsService::SourceOf(
    store::File& file, SnapshotTable::SnapshotPtr snapshot) {
  const store::VersionNumber version = snapshot->info().version;
  SnapshotTable::Held held{std::move(snapshot), file.file_id()};
  if (version == 0) return std::make_unique<Source>(std::move(held));
  // By the version's own cut and time, as everybody reads it.
  auto reader = file.OpenVersion(version);
  // It was dropped just now.
  if (absl::IsOutOfRange(reader.status())) return std::make_unique<Source>(std::move(held));
  H5M_RETURN_IF_ERROR(reader.status());
  return std::make_unique<Source>(*std::move(reader), file.file_id());
}

absl::StatusOr<std::unique_ptr<SnapshotsService::Source>> SnapshotsService::OpenNewestAt(
    const v1::ReadSnapshotRequest& request, absl::Time time) {
  H5M_ASSIGN_OR_RETURN(const auto file, OpenFile(request.name()));
  linked_.Note(request.name());
  H5M_ASSIGN_OR_RETURN(auto newest, table_.Open(*file, request.reader_id()));
  if (newest->info().time <= time) return SourceOf(*file, std::move(newest));
  table_.Close(request.name(), newest->info().cut, request.reader_id());
  auto held = table_.OpenAt(request.name(), time, request.reader_id());
  if (held) return std::make_unique<Source>(*std::move(held));
  const auto version = file->FindVersionAt(time);
  // Before its first cut there was no such file; before another one there was.
  if (absl::IsNotFound(version.status()) && newest->info().cut > 1) {
    return absl::OutOfRangeError(StrCat(
        "snapshot expired, reopen: no cut of ", request.name(), " of ",
        absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone()), " or before is held"));
  }
  H5M_RETURN_IF_ERROR(version.status());
  H5M_ASSIGN_OR_RETURN(auto reader, file->OpenVersion(version->version));
  return std::make_unique<Source>(std::move(reader), file->file_id());
}

absl::StatusOr<std::unique_ptr<SnapshotsService::Source>> SnapshotsService::OpenSource(
    const v1::ReadSnapshotRequest& request) {
  H5M_RETURN_IF_ERROR(CheckRequest(request));
  if (request.cut() == 0) {
    if (!request.has_not_after_time()) return OpenNewest(request);
    return OpenNewestAt(request, FromProto(request.not_after_time()));
  }
  auto held = table_.Find(request.name(), request.cut(), request.file_id(), request.reader_id());
  if (held && !held->snapshot->expired()) return std::make_unique<Source>(*std::move(held));
  return OpenAgain(request);
}

absl::StatusOr<std::unique_ptr<SnapshotsService::Source>> SnapshotsService::OpenAgain(
    const v1::ReadSnapshotRequest& request) {
  const auto expired = [&] {
    return absl::OutOfRangeError(StrCat("snapshot expired, reopen: cut ", request.cut(), " of ",
                                        request.name(), " is not held any more"));
  };
  if (request.file_id().empty()) return expired();
  // Whatever became of the file, to who has the cut open it is gone.
  const auto opened = OpenFile(request.name());
  if (!opened.ok()) return expired();
  store::File& file = **opened;
  const std::string file_id(file.file_id().begin(), file.file_id().end());
  if (file_id != request.file_id() || file.NewestCut() != request.cut()) return expired();
  H5M_ASSIGN_OR_RETURN(auto snapshot, table_.Open(file, request.reader_id()));
  if (snapshot->info().cut == request.cut()) {
    return std::make_unique<Source>(SnapshotTable::Held{std::move(snapshot), file.file_id()});
  }
  table_.Close(request.name(), snapshot->info().cut, request.reader_id());
  return expired();
}

grpc::Status SnapshotsService::ReadSnapshot(grpc::ServerContext* context,
                                            const v1::ReadSnapshotRequest* request,
                                            grpc::ServerWriter<v1::ReadSnapshotResponse>* writer) {
  return RunCall(environment_, *context, "ReadSnapshot", Right::kRead,
                 [&](const Principal&) { return Read(*request, *writer); });
}

absl::Status SnapshotsService::Read(const v1::ReadSnapshotRequest& request,
                                    grpc::ServerWriter<v1::ReadSnapshotResponse>& writer) {
  const absl::Time open_time = environment_.clock.Now();
  H5M_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, OpenSource(request));
  v1::ReadSnapshotResponse part;
  *source->proto().mutable_open_time() = ToProto(open_time);
  *part.mutable_snapshot() = source->proto();
  if (!writer.Write(part)) return absl::CancelledError("the caller has gone");
  part.clear_snapshot();
  const uint64_t size = source->size_bytes();
  const uint64_t begin = std::min(request.offset(), size);
  const uint64_t wanted = request.length_bytes() == 0 ? size : request.length_bytes();
  const uint64_t end = begin + std::min(wanted, size - begin);
  for (uint64_t at = begin; at < end;) {
    H5M_ASSIGN_OR_RETURN(const Extent data, source->NextData(at));
    if (data.length == 0 || data.offset >= end) break;
    const uint64_t data_end = std::min(data.end(), end);
    for (at = std::max(at, data.offset); at < data_end;) {
      std::string& bytes = *part.mutable_data();
      bytes.resize(std::min(kPartBytes, data_end - at));
      H5M_RETURN_IF_ERROR(source->Read(at, absl::MakeSpan(bytes)));
      part.set_offset(at);
      part.set_data_crc32c(Crc32c(bytes));
      if (!writer.Write(part)) return absl::CancelledError("the caller has gone");
      at += bytes.size();
    }
  }
  return SendMetadata(request, *source, {begin, end - begin}, writer);
}

absl::Status SnapshotsService::SendMetadata(const v1::ReadSnapshotRequest& request, Source& source,
                                            Extent read,
                                            grpc::ServerWriter<v1::ReadSnapshotResponse>& writer) {
  if (!request.is_metadata()) return absl::OkStatus();
  const auto file = OpenFile(request.name());
  if (!file.ok()) return absl::OkStatus();  // The range was sent.
  return SendMetadataBlocks<v1::ReadSnapshotResponse>(
      **file, source.size_bytes(), request, read,
      [&](absl::Span<const Extent> ranges, absl::Span<char> out) {
        return source.ReadRanges(ranges, out);
      },
      writer);
}

grpc::Status SnapshotsService::CloseSnapshot(grpc::ServerContext* context,
                                             const v1::CloseSnapshotRequest* request,
                                             v1::CloseSnapshotResponse*) {
  return RunCall(environment_, *context, "CloseSnapshot", Right::kRead, [&](const Principal&) {
    table_.Close(request->name(), request->cut(), request->reader_id());
    return absl::OkStatus();
  });
}

}  // namespace h5mirror::server
