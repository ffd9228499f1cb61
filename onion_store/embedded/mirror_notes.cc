#include "onion_store/embedded/mirror_notes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/local_record.h"
#include "base/random.h"
#include "base/status_macros.h"

namespace h5mirror::store {
namespace {

// The new time is later than any time that the record had. So the program that wrote the record
// last no longer changes it.
absl::Status WriteNow(const RecordPlace& place, LocalRecord record) {
  record.since = std::max(absl::Now(), record.since + absl::Nanoseconds(1));
  return WriteLocalRecord(place, record);
}

// The bytes of the present file that the server lacks; unset: unknown.
std::optional<DirtyMap> MapOf(const FoundRecord& found, const FileStat& now) {
  const LocalRecord& record = found.record;
  if (record.state != RecordState::kClean) return FindDirtyMap(found.place, record, now);
  if (record.stat != now || record.cut == 0) return std::nullopt;
  DirtyMap map;
  map.id = RandomBytes16();
  map.file_id = record.file_id;
  map.claim = DirtyMap::Claim::kContinue;
  map.base_cut = record.cut;
  map.stat = now;
  return map;
}

std::vector<Extent> ExtentsOf(const JournalCut& cut) {
  std::vector<Extent> extents;
  for (const JournalPage& page : cut.pages)
    extents.push_back({page.offset, std::max(page.before.size(), page.after.size())});
  // If the head does not move after all, the server lacks all bytes that it was told to cut off.
  if (cut.size_after < cut.size_before)
    extents.push_back({cut.size_after, cut.size_before - cut.size_after});
  std::erase_if(extents, [](const Extent& extent) { return extent.length == 0; });
  return extents;
}

void AddCut(const JournalCut& cut, DirtyMap* map) {
  for (const Extent& extent : ExtentsOf(cut)) map->extents.Add(extent);
  if (cut.size_after < cut.size_before)
    map->truncate = std::min(cut.size_after, map->truncate.value_or(cut.size_after));
}

// True: the map has all that the cut changed. Extents beyond the end do not count; the first look
// at the moved head dropped them.
bool KnowsOf(const DirtyMap& map, const JournalCut& cut, uint64_t size_bytes) {
  for (const Extent& extent : ExtentsOf(cut)) {
    const uint64_t end = std::min(extent.end(), size_bytes);
    if (end <= extent.offset) continue;
    const std::vector<Extent> known =
        map.extents.Intersection({extent.offset, end - extent.offset});
    if (known.size() != 1 || known[0].length != end - extent.offset) return false;
  }
  return cut.size_after >= cut.size_before || (map.truncate && *map.truncate <= cut.size_after);
}

// A map of the whole file is true for any change of the head since the base.
void AddAll(uint64_t size_bytes, DirtyMap* map) {
  map->extents.Add({0, size_bytes});
  map->truncate = std::min(size_bytes, map->truncate.value_or(size_bytes));
}

absl::Status NoteMove(const FoundRecord& found, const FileStat& now, const JournalCut& cut,
                      const MovedFrom& from) {
  const FileStat& recorded = found.record.stat;
  // Else the file and the mirror had diverged when the cut came.
  if (recorded != from.before && recorded != from.found) return absl::OkStatus();
  std::optional<DirtyMap> map = FindAnyDirtyMap(found.place, found.record);
  if (!map) return absl::OkStatus();
  const auto size_bytes = static_cast<uint64_t>(now.size_bytes);
  // Only this cut has changed the head since the map was true for it.
  const bool only_moved =
      from.found == from.before && recorded == from.before && map->stat == from.before;
  if (!only_moved || !KnowsOf(*map, cut, size_bytes)) AddAll(size_bytes, &*map);
  map->stat = now;
  map->extents.TruncateTo(size_bytes);
  H5M_RETURN_IF_ERROR(WriteDirtyMap(found.place, *map));
  LocalRecord record = found.record;
  record.stat = now;
  return WriteNow(found.place, std::move(record));
}

}  // namespace

absl::Status NoteComingCut(const std::filesystem::path& head, const JournalCut& cut) {
  H5M_ASSIGN_OR_RETURN(const FileStat now, StatFile(head));
  H5M_ASSIGN_OR_RETURN(const std::vector<FoundRecord> records, FindLocalRecords(head));
  for (const FoundRecord& each : records) {
    H5M_ASSIGN_OR_RETURN(FoundRecord found, TakeRecordOf(each.place, each.record.server));
    std::optional<DirtyMap> map = MapOf(found, now);
    if (!map) continue;
    AddCut(cut, &*map);
    LocalRecord& record = found.record;
    record.state = RecordState::kBehind;
    record.dirty_map_id = map->id;
    record.detail = "an edit is on its way to the server";
    // The unanswered barrier of a session would stand for the file without this cut.
    record.pending_seq = 0;
    // A map that its record names already still covers all that it covered before.
    H5M_RETURN_IF_ERROR(WriteDirtyMap(found.place, *map));
    H5M_RETURN_IF_ERROR(WriteNow(found.place, record));
  }
  return absl::OkStatus();
}

HeadMoved NoteMovesOf(const std::filesystem::path& head) {
  return [head](const JournalCut& cut, const MovedFrom& from) {
    const auto now = StatFile(head);
    const auto records = FindLocalRecords(head);
    if (!now.ok() || !records.ok()) return;
    // If another file was put in its place meanwhile, no map is about that file.
    if (now->inode != from.found.inode) return;
    for (const FoundRecord& found : *records) NoteMove(found, *now, cut, from).IgnoreError();
  };
}

}  // namespace h5mirror::store
