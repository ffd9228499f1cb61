// The h5mirror command, from its arguments to its exit code.
#ifndef H5MIRROR_TOOLS_CLI_H_
#define H5MIRROR_TOOLS_CLI_H_

#include <string>
#include <vector>

#include "tools/streams.h"
#include "tools/verb_diff.h"

namespace h5mirror::tools {

// Runs one command line, without the program's name. Errors are printed as one line; the
// exit code is one of tools/exit_code.h, or the program's for `exec`.
// `diff` needs HDF5: with a `runner` it is done by that, else by the helper program that has it.
int RunCli(const std::vector<std::string>& arguments, Streams& streams,
           const DiffRunner& runner = nullptr);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_CLI_H_
