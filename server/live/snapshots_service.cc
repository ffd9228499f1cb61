#include "server/live/snapshots_service.h"

#include <algorithm>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/live/cut_source.h"

namespace h5mirror::server {
namespace {

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

SnapshotsService::SnapshotsService(const ServiceEnvironment& environment, absl::Duration keep,
                                   absl::Duration tick)
    : environment_(environment),
      recent_(environment.clock),
      table_(environment.clock, keep),
      linked_(environment.clock, table_,
              [this](const std::string& name) { return OpenFile(name); }),
      board_(*environment.cuts),
      publisher_(environment, tick),
      workers_(kWorkers, "wait for cut"),
      closes_(1, "close snapshot") {
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
  SnapshotTable::Pinned held{std::move(snapshot), file.file_id()};
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
  auto held = table_.OpenAt(request.name(), file->file_id(), time, request.reader_id());
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

absl::StatusOr<std::unique_ptr<FileBytes>> SnapshotsService::OpenBytes(
    const std::string& name, store::CutNumber cut, std::string_view file_id,
    const std::string& reader_id) {
  v1::ReadSnapshotRequest request;
  request.set_name(name);
  request.set_cut(cut);
  request.set_file_id(std::string(file_id));
  // A reader of its own opens the cut, and is gone at once: one that never closes would hold it
  // until the next cut.
  request.set_reader_id(ToByteString(RandomBytes16()));
  auto source = OpenSource(request);
  H5M_RETURN_IF_ERROR(source.status());
  if ((*source)->is_pinned()) {
    table_.Find(name, (*source)->proto().cut(), (*source)->proto().file_id(), reader_id);
    table_.Close(name, (*source)->proto().cut(), request.reader_id());
  }
  return std::unique_ptr<FileBytes>(*std::move(source));
}

absl::StatusOr<std::unique_ptr<SnapshotsService::Source>> SnapshotsService::OpenAgain(
    const v1::ReadSnapshotRequest& request) {
  const auto expired = [&] {
    return absl::OutOfRangeError(StrCat("snapshot expired, reopen: cut ", request.cut(), " of ",
                                        request.name(), " is not held any more"));
  };
  if (request.file_id().empty()) return expired();
  // The cut is gone, and a reader that has it open must hear that instead of the file's error.
  const auto opened = OpenFile(request.name());
  if (!opened.ok()) return expired();
  store::File& file = **opened;
  const std::string file_id(file.file_id().begin(), file.file_id().end());
  if (file_id != request.file_id() || file.NewestCut() != request.cut()) return expired();
  H5M_ASSIGN_OR_RETURN(auto snapshot, table_.Open(file, request.reader_id()));
  if (snapshot->info().cut == request.cut()) {
    return std::make_unique<Source>(SnapshotTable::Pinned{std::move(snapshot), file.file_id()});
  }
  table_.Close(request.name(), snapshot->info().cut, request.reader_id());
  return expired();
}

}  // namespace h5mirror::server
