// Tells how a local file stands to its mirror, without opening a session
// (docs/design/020-which-side-is-right.md).
#ifndef H5MIRROR_CLI_VERBS_STANDING_REPORT_H_
#define H5MIRROR_CLI_VERBS_STANDING_REPORT_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/local_record.h"
#include "h5mirror/v1/files.pb.h"

namespace h5mirror::tools {

enum class Standing {
  kLevel,         // both sides hold the same
  kBeingWritten,  // a session writes it now
  kBehind,        // the server lacks the newest
  kCrashed,       // its writer ended without a close
  kChanged,       // the local file was changed outside since its last clean close
  kServerMoved,   // the server's newest is not the state of the local file's close
  kDiverged,      // the client found it so
  kLocalGone,     // a record and no file
  kServerGone,    // the server has no such file, or another one under its name
  kUnknown,       // the server is away, and the record alone does not tell
};

struct StandingReport {
  Standing standing = Standing::kLevel;
  std::string detail;   // one clause for people
  std::string way_out;  // the command or step that settles it; empty if all is well
};

// `stat` unset: there is no local file. `server` unset: it has no file of that name. `address`:
// that server's.
StandingReport JudgeStanding(const std::string& local, const LocalRecord& record,
                             const std::optional<FileStat>& stat,
                             const std::optional<v1::FileStatus>& server,
                             const std::string& address);

// The report from the record and the local file alone, where the server cannot be asked.
StandingReport JudgeRecord(const std::string& local, const LocalRecord& record,
                           const std::optional<FileStat>& stat);

// "level", "being_written", "behind", ...: the value in --json.
std::string_view StandingName(Standing standing);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_STANDING_REPORT_H_
