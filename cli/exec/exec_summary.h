// The summary of `h5mirror exec`, for people.
#ifndef H5MIRROR_CLI_EXEC_EXEC_SUMMARY_H_
#define H5MIRROR_CLI_EXEC_EXEC_SUMMARY_H_

#include "cli/context/context.h"
#include "cli/exec/exec_report.h"

namespace h5mirror::tools {

// Prints on standard error:
//   - a table of the files that have a server: at most 100, those that need a look first
//   - a line for each file that was left out: at most 20
//   - lines for lost writers, and for libraries without the plugin
// A list that is cut short says so.
void Summarize(Context& context, const ExecReport& report);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_EXEC_EXEC_SUMMARY_H_
