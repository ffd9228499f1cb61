// The h5mirror command, from its arguments to its exit code.
#ifndef H5MIRROR_CLI_CLI_H_
#define H5MIRROR_CLI_CLI_H_

#include <string>
#include <vector>

#include "cli/output/streams.h"
#include "cli/verbs/hdf5_runners.h"

namespace h5mirror::tools {

// Runs one command line, without the program's name. Errors are printed as one line; the
// exit code is one of cli/context/exit_code.h, or the program's for `exec`.
// `runners` do the work that needs HDF5; without them the helper program does it.
int RunCli(const std::vector<std::string>& arguments, Streams& streams,
           const Hdf5Runners& runners = {});

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CLI_H_
