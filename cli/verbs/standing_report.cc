#include "cli/verbs/standing_report.h"

#include "base/cut_text.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/server_list.h"
#include "base/strings.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

std::string Both(const std::string& local) {
  return StrCat("h5mirror recover ", local, " takes the server's, h5mirror push ", local,
                " the local one");
}

// "degraded since 2026-11-03 14:00:00 UTC: ..."
std::string Since(std::string_view state, const LocalRecord& record, std::string_view what) {
  const std::string why = record.detail.empty() ? "" : StrCat(": ", record.detail);
  return StrCat(state, " since ", HumanTime(record.since), ": ", what, why);
}

// With a dirty map, of the file as it is, the next session sends what is missing.
StandingReport JudgeBehind(const std::string& local, const LocalRecord& record,
                           const FileStat& stat, std::string_view when) {
  const bool noted = record.dirty_map_id != decltype(record.dirty_map_id){} && record.stat == stat;
  return {Standing::kBehind, Since("degraded", record, "the server lacks the newest"),
          StrCat(noted ? "the next open that writes to it brings the rest, or: h5mirror push "
                       : "h5mirror push ",
                 local, " ", when)};
}

StandingReport JudgeDiverged(const std::string& local, const LocalRecord& record) {
  return {Standing::kDiverged, Since("diverged", record, "the two sides have diverged"),
          Both(local)};
}

StandingReport JudgeClean(const std::string& local, const LocalRecord& record, const FileStat& stat,
                          const v1::FileStatus& server) {
  if (stat != record.stat) {
    return {Standing::kChanged, "the local file was changed since its last mirrored close",
            StrCat(server.last_cut() == record.cut
                       ? "the next mirrored open that writes to it takes it in as a version, "
                         "unless on_outside_change=ask; or: "
                       : "",
                   Both(local), "; if the bytes are the same, h5mirror adopt ", local)};
  }
  if (server.last_cut() != record.cut) {
    return {Standing::kServerMoved,
            StrCat("the server is at cut ", CutText(server.last_cut()), " (version ",
                   server.newest_version().version(), "), the local file was closed as cut ",
                   CutText(record.cut), " (version ", record.version, ")"),
            Both(local)};
  }
  return {Standing::kLevel, StrCat("level at version ", record.version), ""};
}

}  // namespace

StandingReport JudgeStanding(const std::string& local, const LocalRecord& record,
                             const std::optional<FileStat>& stat,
                             const std::optional<v1::FileStatus>& server,
                             const std::string& address) {
  if (!server.has_value()) {
    return {Standing::kServerGone, StrCat("the server has no file ", record.name),
            StrCat("h5mirror push ", local, " uploads it")};
  }
  if (server->file_id() != ToByteString(record.file_id)) {
    return {Standing::kServerGone, StrCat("the server has another file under ", record.name),
            StrCat("h5mirror adopt ", local, " if the bytes are the same, else ", Both(local))};
  }
  if (!stat.has_value()) {
    return {Standing::kLocalGone, "the local file is gone",
            StrCat("h5mirror recover ", local, " brings it back")};
  }
  // Numbers of cuts say nothing between two servers, which may have parted from one root.
  if (!IsSameServer(record.server, address) && !IsSameStat(server->local(), record.stat)) {
    return {Standing::kUnknown,
            StrCat("the record is of ", record.server, ", and it is not known whether ", address,
                   " has the same"),
            StrCat("h5mirror rehome ", local, " compares the two")};
  }
  switch (record.state) {
    case RecordState::kClean:
      return JudgeClean(local, record, *stat, *server);
    case RecordState::kBehind:
      return JudgeBehind(local, record, *stat, "once it is closed");
    case RecordState::kDiverged:
      return JudgeDiverged(local, record);
    case RecordState::kOpen:
      break;
  }
  if (server->has_lease()) {
    return {Standing::kBeingWritten,
            StrCat("being written by ", server->lease().writer().program(), " (pid ",
                   server->lease().writer().pid(), " on ", server->lease().writer().host(), ")"),
            ""};
  }
  return {Standing::kCrashed, "its writer ended without a close",
          StrCat("h5mirror recover ", local, " goes back to the last cut; h5mirror push --any ",
                 local, " takes the local one as it is")};
}

StandingReport JudgeRecord(const std::string& local, const LocalRecord& record,
                           const std::optional<FileStat>& stat) {
  if (!stat.has_value()) {
    return {Standing::kLocalGone, "the local file is gone",
            StrCat("h5mirror recover ", local, " brings it back, once the server is there")};
  }
  switch (record.state) {
    case RecordState::kClean:
      if (*stat == record.stat) {
        return {Standing::kUnknown, StrCat("closed as version ", record.version), ""};
      }
      return {Standing::kChanged, "changed since its last mirrored close", ""};
    case RecordState::kBehind:
      return JudgeBehind(local, record, *stat, "once the server is there");
    case RecordState::kDiverged:
      return JudgeDiverged(local, record);
    case RecordState::kOpen:
      break;
  }
  return {Standing::kUnknown, "being written, or its writer ended without a close", ""};
}

std::string_view StandingName(Standing standing) {
  switch (standing) {
    case Standing::kLevel:
      return "level";
    case Standing::kBeingWritten:
      return "being_written";
    case Standing::kBehind:
      return "behind";
    case Standing::kCrashed:
      return "crashed";
    case Standing::kChanged:
      return "changed";
    case Standing::kServerMoved:
      return "server_moved";
    case Standing::kDiverged:
      return "diverged";
    case Standing::kLocalGone:
      return "local_gone";
    case Standing::kServerGone:
      return "server_gone";
    case Standing::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace h5mirror::tools
