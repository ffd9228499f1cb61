#include "client_vfd/session/session_record.h"

#include <algorithm>
#include <utility>

#include "base/server_list.h"

namespace h5mirror::vfd {

std::optional<FoundRecord> SessionRecord::Find(const LocalFacts& facts) {
  absl::StatusOr<FoundRecord> found = TakeRecordOf(place_, facts.server);
  if (found.ok()) return *std::move(found);
  if (!absl::IsNotFound(found.status()) || facts.created) return std::nullopt;
  absl::StatusOr<FoundRecord> former = FindFormerRecord(place_, facts.server, facts.stat_at_open);
  if (!former.ok()) return std::nullopt;
  former_place_ = former->place;
  return *std::move(former);
}

std::optional<DirtyMap> SessionRecord::FindMap(const FoundRecord& found, const Relation& relation,
                                               const LocalFacts& facts) const {
  if (facts.created || former_place_) return std::nullopt;
  std::optional<DirtyMap> map = FindDirtyMap(found.place, value_, facts.stat_at_open);
  // Under a new name the server's answer to a resume would be that it has no such file.
  const bool renamed = !relation.renamed_from.empty();
  if (map && renamed && map->claim == DirtyMap::Claim::kResume) return std::nullopt;
  return map;
}

void SessionRecord::Begin(const std::optional<FoundRecord>& found, const Relation& relation,
                          const LocalFacts& facts) {
  const bool is_known = found && IsSameServer(found->record.server, facts.server);
  const bool is_same =
      is_known && (found->record.name == facts.name || !relation.renamed_from.empty());
  if (is_same || (found && relation.moved_cut != 0)) {
    value_ = found->record;
    value_.renamed_from = relation.renamed_from;
  } else {
    value_.stat = facts.stat_at_open;
  }
  value_.server = facts.server;
  value_.name = facts.name;
  // It lay there while the file had another number of mirrors.
  if (is_known && found->place.tag != place_.tag) elsewhere_ = found->place;
}

void SessionRecord::Inherit(LocalRecord record, const RecordPlace& place) {
  value_ = std::move(record);
  if (place.tag != place_.tag) elsewhere_ = place;
}

void SessionRecord::BeginAsNewFile() {
  ForgetRename();
  value_.file_id = {};
  former_place_.reset();
}

absl::StatusOr<bool> SessionRecord::Save(const News& news, Writing writing) {
  const absl::Time written_at = value_.since;
  Fill(news);
  const bool had_map = names_map();
  if (news.state != RecordState::kBehind) ForgetMap();
  absl::StatusOr<bool> written = true;
  if (writing == Writing::kUpdate) {
    written = UpdateLocalRecord(place_, value_, written_at);
  } else if (absl::Status status = WriteLocalRecord(place_, value_); !status.ok()) {
    written = std::move(status);
  }
  const bool saved = written.value_or(false);
  if (!saved) value_.since = written_at;
  // (An update has removed it.)
  if (saved && had_map && !names_map() && writing == Writing::kMake) RemoveDirtyMap(place_);
  return written;
}

void SessionRecord::Fill(const News& news) {
  value_.state = news.state;
  value_.since = std::max(news.now, value_.since + absl::Nanoseconds(1));
  value_.detail = news.state == RecordState::kClean ? "" : news.detail;
  value_.pending_seq = 0;
  if (news.stat) value_.stat = *news.stat, value_.group = news.group;
  if (news.state == RecordState::kClean) {
    SetLevel(news.cut, news.version);
  } else if (news.final_seq) {
    value_.pending_session_id = news.session_id;
    value_.pending_seq = *news.final_seq;
  }
}

absl::Status SessionRecord::SaveMap(const DirtyMap& map) {
  absl::Status written = WriteDirtyMap(place_, map);
  if (written.ok()) value_.dirty_map_id = map.id;
  return written;
}

bool SessionRecord::ForgetMap() {
  const bool named = names_map();
  value_.dirty_map_id = {};
  return named;
}

bool SessionRecord::NoteOutside(const DirtyMap& map, absl::Time now) {
  if (!WriteDirtyMap(place_, map).ok()) return false;
  LocalRecord noted = value_;
  noted.state = RecordState::kBehind;
  noted.stat = map.stat;
  noted.pending_session_id = map.session_id;
  noted.pending_seq = 1;
  noted.dirty_map_id = map.id;
  noted.detail = "an outside change was not answered";
  noted.since = std::max(now, value_.since + absl::Nanoseconds(1));
  if (!WriteLocalRecord(place_, noted).ok()) return false;
  value_ = std::move(noted);
  return true;
}

void SessionRecord::SetLevel(int64_t cut, int64_t version) {
  value_.cut = cut;
  value_.version = version;
}

bool SessionRecord::SetFileId(const Bytes16& file_id) {
  return std::exchange(value_.file_id, file_id) != file_id;
}

void SessionRecord::ForgetElsewhere() {
  if (elsewhere_) RemoveLocalRecord(*elsewhere_);
  elsewhere_.reset();
}

void SessionRecord::ForgetFormerPlace() {
  if (former_place_) RemoveLocalRecord(*former_place_);
  former_place_.reset();
}

bool SessionRecord::IsAnothers() const {
  const absl::StatusOr<LocalRecord> now = ReadLocalRecord(place_);
  return now.ok() && now->since != value_.since;
}

}  // namespace h5mirror::vfd
