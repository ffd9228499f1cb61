// How removed files are deleted for good: docs/design/033-moving-and-removing.md.
//
//   removed/ID --> removed/gone-ID, for good --> objects of the archive --> the rest
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/version_index.h"
#include "onion_store/store/removed_files.h"
#include "onion_store/store/reservation.h"
#include "onion_store/store/store_impl.h"

namespace h5mirror::store {
namespace {

constexpr absl::Duration kDeleteTimeout = absl::Seconds(30);

// The objects of a history in the archive; unknown if its index is damaged.
struct ArchivedHistory {
  std::vector<ArchivedSegment> segments;
  std::string copies;  // the prefix of their names; empty: there are none
};

absl::StatusOr<ArchivedHistory> ReadArchived(VersionIndex& index) {
  ArchivedHistory archived;
  H5M_ASSIGN_OR_RETURN(archived.segments, index.ListArchived());
  H5M_ASSIGN_OR_RETURN(const auto copy, index.FindCopy());
  if (!copy) return archived;
  H5M_ASSIGN_OR_RETURN(const FileRow row, index.ReadFileRow());
  archived.copies = StrCat("files/", HexOf(row.file_id), "/copy-");
  return archived;
}

absl::StatusOr<ArchivedHistory> ObjectsOf(StoreContext& context, const std::string& history) {
  const auto index = VersionIndex::Open(context.vfs, *context.tree, history, IndexUse::kRead);
  if (absl::IsNotFound(index.status()) || absl::IsDataLoss(index.status())) {
    return ArchivedHistory();
  }
  H5M_RETURN_IF_ERROR(index.status());
  auto archived = ReadArchived(**index);
  if (absl::IsDataLoss(archived.status())) return ArchivedHistory();
  return archived;
}

// Deletes the copies of a file: their lists first, because a copy with missing parts must not
// count.
absl::Status DeleteCopies(ObjectStore& archive, const std::string& prefix) {
  for (const std::string_view ending : {"-list", ""}) {
    std::string next;
    do {
      H5M_ASSIGN_OR_RETURN(const ObjectPage page,
                           archive.List(prefix, next, kObjectListMax, kDeleteTimeout));
      for (const ObjectInfo& object : page.objects) {
        if (!object.name.ends_with(ending)) continue;
        H5M_RETURN_IF_ERROR(archive.Delete(object.name, kDeleteTimeout));
      }
      next = page.next;
    } while (!next.empty());
  }
  return absl::OkStatus();
}

// Before the segments that the copies need.
absl::Status DeleteObjects(ObjectStore& archive, const ArchivedHistory& archived) {
  if (!archived.copies.empty()) H5M_RETURN_IF_ERROR(DeleteCopies(archive, archived.copies));
  for (const ArchivedSegment& segment : archived.segments) {
    H5M_RETURN_IF_ERROR(archive.Delete(segment.object, kDeleteTimeout));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StoreImpl::EraseOneGone(const std::string& place, ArchiveCalls& calls) {
  auto objects = ObjectsOf(*context_, HistoryIn(place));
  if (absl::IsFailedPrecondition(objects.status())) return absl::OkStatus();  // A newer program's.
  // At a start an unreadable index must not stop the store: the next purge reports it.
  if (!objects.ok() && calls == ArchiveCalls::kNone) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(objects.status());
  ObjectStore* const archive = context_->objects.store();
  if (!objects->segments.empty() || !objects->copies.empty()) {
    // The rows that name the objects stay until these are deleted.
    if (archive == nullptr || calls == ArchiveCalls::kNone) return absl::OkStatus();
    if (!DeleteObjects(*archive, *objects).ok()) {
      calls = ArchiveCalls::kNone;  // No answer: do not ask again for each file.
      return absl::OkStatus();
    }
  }
  return EraseGone(*context_->tree, place);
}

absl::Status StoreImpl::EraseAllGone(ArchiveCalls calls) {
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> places, ListGone(*context_->tree));
  for (const std::string& place : places) {
    H5M_ASSIGN_OR_RETURN(const auto reservation, Reservation::Take(*this, {place}));
    H5M_RETURN_IF_ERROR(EraseOneGone(place, calls));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> StoreImpl::PurgeRemoved(absl::Time now) {
  H5M_ASSIGN_OR_RETURN(const std::vector<RemovedFile> files, ListRemoved());
  int count = 0;
  ArchiveCalls calls = ArchiveCalls::kMay;
  for (const RemovedFile& removed : files) {
    if (removed.expires > now) continue;
    const absl::Status purged = PurgeRemovedFile(removed.id, calls);
    if (absl::IsNotFound(purged)) continue;  // Brought back meanwhile.
    H5M_RETURN_IF_ERROR(purged);
    ++count;
  }
  // Erases removals whose objects could not be deleted before.
  H5M_RETURN_IF_ERROR(EraseAllGone(calls));
  return count;
}

absl::Status StoreImpl::PurgeOneRemoved(std::string_view removal_id) {
  ArchiveCalls calls = ArchiveCalls::kMay;
  return PurgeRemovedFile(removal_id, calls);
}

absl::Status StoreImpl::PurgeRemovedFile(std::string_view removal_id, ArchiveCalls& calls) {
  H5M_RETURN_IF_ERROR(CheckRemovalId(removal_id));
  EnvTree& tree = *context_->tree;
  std::string gone;
  {
    const std::string place = RemovedHead(removal_id);
    H5M_RETURN_IF_ERROR(FinishPending({&place, 1}));
    H5M_ASSIGN_OR_RETURN(const auto reservation, Reservation::Take(*this, {place}));
    H5M_RETURN_IF_ERROR(GetRemoved(tree, removal_id).status());
    H5M_ASSIGN_OR_RETURN(gone, SetGone(tree, removal_id));
  }
  H5M_ASSIGN_OR_RETURN(const auto reservation, Reservation::Take(*this, {gone}));
  // If objects are left, the next PurgeRemoved() continues.
  return EraseOneGone(gone, calls);
}

}  // namespace h5mirror::store
