// Makes a new file that begins with the bytes of another file's version: docs/design/044-forks.md.
//
// The version is copied into gen-1, as in a rollback to an older generation. Its first cut becomes
// durable as any file's does: docs/design/030-order-of-writes.md. The source needs no lock
// meanwhile. An apply may change the source's head while blocks are shared. But a page gets a row
// before it changes, and the copy overwrites each page that has a row
// (VersionReaderImpl::CopyTo()).
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/file/made_version.h"
#include "onion_store/file/versions/version_reader.h"
#include "onion_store/shared/head_access.h"

namespace h5mirror::store {

absl::StatusOr<std::optional<SourceVersion>> FileImpl::ForkedFrom() {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return std::nullopt;
  return index->ForkedFrom();
}

absl::StatusOr<VersionInfo> FileImpl::BecomeFork(FileImpl& source, VersionNumber version,
                                                 const ForkRequest& request) {
  // As in a rollback: no wait for an archive with the work lock held.
  std::shared_ptr<const int> kept;
  if (const auto needed = source.GetVersion(version); needed.ok()) {
    H5M_ASSIGN_OR_RETURN(kept, source.KeepOnDiskOf(needed->generation, needed->version));
  }
  absl::StatusOr<VersionInfo> made;
  {
    NameDirectories::Use use(context_->name_directories, files_.name());
    WorkTurn turn(&work_lock_);
    made = BecomeForkLocked(source, version, request);
    if (!made.ok()) use.Abandon();
  }
  context_->TellOfOwner(files_.name());  // Even after a failure: a cut may exist.
  return made;
}

absl::StatusOr<VersionInfo> FileImpl::BecomeForkLocked(FileImpl& source, VersionNumber version,
                                                       const ForkRequest& request) {
  H5M_ASSIGN_OR_RETURN(const auto opened, source.OpenVersion(version));
  auto& reader = static_cast<VersionReaderImpl&>(*opened);
  const VersionInfo& target = reader.info();
  H5M_RETURN_IF_ERROR(CheckRoomFor(source, reader, request.is_cancelled));
  if (absl::Status begun = BeginFork(source.row().mode_bits, request.access); !begun.ok()) {
    LeaveNothingLocked();
    return begun;
  }
  metadata_.Add(source.metadata_.Within({0, target.size_bytes}));
  const CutRequest cut =
      CutOfCall(target.size_bytes, request.provenance,
                StrCat("fork of ", source.name(), "@", target.version), request.request_id);
  auto made = FinishMade(CopyGeneration(reader, target, request.is_cancelled), cut,
                         SourceIn(source, target, SourceKind::kFork, request.provenance));
  if (!made.ok()) LeaveNothingLocked();
  return made;
}

// Only an estimate: other writers may fill the disk all the same.
absl::Status FileImpl::CheckRoomFor(const FileImpl& source, VersionReaderImpl& reader,
                                    const IsCancelled& is_cancelled) {
  const absl::StatusOr<uint64_t> free = context_->tree->FreeBytes();
  if (!free.ok() || reader.info().size_bytes <= *free) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const uint64_t needed, reader.BytesToCopy(is_cancelled));
  // Last, because it costs the most. If it is not known, the copy finds out.
  if (needed <= *free || reader.CanShareIn(*context_->tree).value_or(true)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(StrCat(
      files_.name(), ": a fork of ", source.name(), "@", reader.info().version, " copies ", needed,
      " bytes (", HumanBytes(needed), ") here, as no blocks can be shared, and ", *free, " bytes (",
      HumanBytes(*free), ") are free on the server's disk; nothing was made: make room there, as ",
      "with h5mirror prune or rm, or export the version to another disk"));
}

absl::Status FileImpl::BeginFork(uint32_t mode_bits, const LocalAccess& access) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (HasCut() || session_.is_writing() || open_.is_open()) {
    return absl::AlreadyExistsError(StrCat(files_.name(), " exists: choose another name"));
  }
  session_.End();
  const HeadAccess head_access(*context_, files_.name());
  H5M_RETURN_IF_ERROR(BeginLocked(
      SessionStart::kNewGeneration, {Origin{}, mode_bits},
      [&](EnvFile& head) { return head_access.GiveFork(head, mode_bits, access.reader); }));
  owner_ = CheckOwner(access.owner).ok() ? access.owner : std::string();
  return absl::OkStatus();
}

void FileImpl::LeaveNothing() {
  WorkTurn turn(&work_lock_);
  LeaveNothingLocked();
}

void FileImpl::LeaveNothingLocked() {
  absl::MutexLock lock(&mutex_);
  if (HasCut() || session_.is_writing() || open_.is_open()) return;
  if (!health_.dead().ok()) return;  // The next open sees to it.
  owner_.clear();
  history_.ClearMark();
  // Left if the file could not be given its access.
  context_->tree->Remove(files_.GenerationName(1)).IgnoreError();
  history_.RemoveEmpty();
}

}  // namespace h5mirror::store
