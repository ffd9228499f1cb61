// Verbs that take several local files.
#ifndef H5MIRROR_TOOLS_EACH_FILE_H_
#define H5MIRROR_TOOLS_EACH_FILE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tools/context.h"
#include "tools/exit_code.h"
#include "tools/json.h"

namespace h5mirror::tools {

// What became of one file, for programs and for people.
struct FileOutcome {
  Json json;
  std::string text;
};

// Calls `one` for each file and tells what it returns. One file's error does not keep the others
// from their turn, but for kUnavailable, for which they would wait in vain too; the first one's
// code is the program's, and is returned. The error of an only file is the verb's own.
absl::StatusOr<int> ForEachFile(
    Context& context, const std::vector<std::string>& locals,
    absl::FunctionRef<absl::StatusOr<FileOutcome>(const std::string& local)> one);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_EACH_FILE_H_
