// Verbs that take several local files.
#ifndef H5MIRROR_CLI_VERBS_EACH_FILE_H_
#define H5MIRROR_CLI_VERBS_EACH_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/exit_code.h"
#include "cli/context/file_arg.h"
#include "cli/output/json.h"

namespace h5mirror::tools {

// The result for one file, for programs and for people.
struct FileOutcome {
  Json json;
  std::string text;
};

// Further work beside the files' turns; each may be left out.
struct EachFileExtras {
  // How many files are worked on at once, each with a connection of its own.
  int jobs = 1;
  // Of all files: for the line on a terminal.
  uint64_t total_bytes = 0;
  // Only errors are told.
  bool is_quiet = false;
  // At the end, with how many turns failed or were left out: a last line, and more keys of the
  // document.
  std::function<FileOutcome(int failed)> summary;
};

// The work on one mirror of one file. Called by several threads at once where jobs > 1, each
// with a context of its own.
using FileTurn = std::function<absl::StatusOr<FileOutcome>(
    Context& context, const std::string& local, const FileArg& mirror)>;

// Calls `turn` for each mirror of each file, or the one of --server, and tells what it returns, in
// the order of the files. After an error the other mirrors still get their turn. Only after
// kUnavailable the remaining files of that server are skipped, since they would also wait in vain.
// Returns the code of the first error, which is the program's. The error of an only file with one
// mirror is the verb's own. Where a file has several mirrors, each message begins with the server.
absl::StatusOr<int> ForEachMirror(Context& context, const std::vector<std::string>& locals,
                                  const FileTurn& turn, const EachFileExtras& extras = {});

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_EACH_FILE_H_
