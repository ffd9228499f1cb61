// The cuts of groups that versions belong to: docs/reference/format.md, "Table group_cut".
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

// The table is made with its first row: most files have none, and older programs do not know it. If
// an older program drops a version, the row stays here. That does no harm: version numbers are
// never given again.
constexpr char kGroupCut[] = R"sql(
CREATE TABLE IF NOT EXISTS group_cut (
  version INTEGER PRIMARY KEY, group_id BLOB NOT NULL, number INTEGER NOT NULL,
  whole_number INTEGER NOT NULL, members BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS group_cut_number ON group_cut (group_id, number);
)sql";

std::string_view View(const std::array<uint8_t, 16>& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

// Each name ends with a zero byte, which no name has.
std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined.append(name.c_str(), name.size() + 1);
  return joined;
}

std::vector<std::string> SplitNames(const std::string& joined) {
  std::vector<std::string> names;
  for (size_t at = 0; at < joined.size();) {
    const size_t end = std::min(joined.find('\0', at), joined.size());
    names.push_back(joined.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// The columns group_id, number and whole_number, from `column` on. kDataLoss: they cannot be.
absl::StatusOr<GroupCut> ReadGroup(const SqliteQuery& query, int column) {
  GroupCut group;
  group.id = query.Bytes16(column);
  const int64_t number = query.Int64(column + 1), whole = query.Int64(column + 2);
  if (query.Bytes(column).size() != group.id.size() || number < 1 || whole < 0 || whole > number) {
    return query.Damaged(StrCat("a version is of cut ", number, " of a group, with cut ", whole,
                                " whole, which cannot be"));
  }
  group.number = static_cast<uint64_t>(number);
  group.whole_number = static_cast<uint64_t>(whole);
  return group;
}

}  // namespace

absl::StatusOr<bool> VersionIndex::HasGroups() {
  if (lacks_groups_) return false;
  SqliteQuery query(*database_,
                    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'group_cut'");
  const bool there = query.Next();
  H5M_RETURN_IF_ERROR(query.status());
  lacks_groups_ = !there;
  return there;
}

absl::Status VersionIndex::PutGroup(VersionNumber version, const GroupCut& group) {
  lacks_groups_ = false;  // The transaction may be rolled back: HasGroups() looks again.
  H5M_RETURN_IF_ERROR(database_->Execute(kGroupCut));
  const std::string members = JoinNames(group.members);
  SqliteQuery query(*database_, "INSERT OR REPLACE INTO group_cut VALUES (?,?,?,?,?)");
  return query.Bind(version)
      .BindBlob(View(group.id))
      .Bind(static_cast<int64_t>(group.number))
      .Bind(static_cast<int64_t>(group.whole_number))
      .BindBlob(members)
      .Run();
}

absl::Status VersionIndex::DropGroup(VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(const bool there, HasGroups());
  if (!there) return absl::OkStatus();
  SqliteQuery query(*database_, "DELETE FROM group_cut WHERE version = ?");
  return query.Bind(version).Run();
}

absl::StatusOr<std::optional<GroupCut>> VersionIndex::FindGroup(VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(const bool there, HasGroups());
  if (!there) return std::nullopt;
  SqliteQuery query(*database_,
                    "SELECT group_id, number, whole_number, members FROM group_cut"
                    " WHERE version = ?");
  if (query.Bind(version).Next()) {
    H5M_ASSIGN_OR_RETURN(GroupCut group, ReadGroup(query, 0));
    group.members = SplitNames(query.Bytes(3));
    return group;
  }
  H5M_RETURN_IF_ERROR(query.status());
  return std::nullopt;
}

absl::Status VersionIndex::FillGroup(VersionInfo& version) {
  auto group = FindGroup(version.version);
  if (!group.ok()) return absl::IsDataLoss(group.status()) ? absl::OkStatus() : group.status();
  version.group = *std::move(group);
  return absl::OkStatus();
}

absl::Status VersionIndex::FillGroups(absl::Span<VersionInfo> versions) {
  if (versions.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const bool there, HasGroups());
  if (!there) return absl::OkStatus();
  SqliteQuery query(*database_,
                    "SELECT version, group_id, number, whole_number FROM group_cut"
                    " WHERE version BETWEEN ? AND ? ORDER BY version DESC");
  query.Bind(versions.back().version).Bind(versions.front().version);
  for (auto at = versions.begin(); query.Next();) {
    while (at != versions.end() && at->version > query.Int64(0)) ++at;
    if (at == versions.end()) break;
    auto group = ReadGroup(query, 1);
    if (at->version == query.Int64(0) && group.ok()) at->group = *std::move(group);
  }
  return query.status();
}

absl::StatusOr<VersionNumber> VersionIndex::FindGroupCut(const GroupCut& cut) {
  absl::MutexLock lock(&mutex_);
  H5M_ASSIGN_OR_RETURN(const bool there, HasGroups());
  if (!there) return 0;
  SqliteQuery query(*database_,
                    "SELECT group_cut.version FROM group_cut JOIN version USING (version)"
                    " WHERE group_id = ? AND number = ? ORDER BY version DESC LIMIT 1");
  query.BindBlob(View(cut.id)).Bind(static_cast<int64_t>(cut.number));
  const VersionNumber found = query.Next() ? query.Int64(0) : 0;
  H5M_RETURN_IF_ERROR(query.status());
  return found;
}

absl::Status VersionIndex::CheckGroups() {
  absl::MutexLock lock(&mutex_);
  H5M_ASSIGN_OR_RETURN(const bool there, HasGroups());
  if (!there) return absl::OkStatus();
  SqliteQuery query(*database_,
                    "SELECT group_id, number, whole_number FROM group_cut ORDER BY version");
  while (query.Next()) H5M_RETURN_IF_ERROR(ReadGroup(query, 0).status());
  return query.status();
}

}  // namespace h5mirror::store
