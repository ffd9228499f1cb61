// The command line as a program: what h5mirror and its helper share.
#ifndef H5MIRROR_CLI_PROGRAM_H_
#define H5MIRROR_CLI_PROGRAM_H_

#include "cli/verbs/hdf5_runners.h"

namespace h5mirror::tools {

// The body of main(): runs the command line on the process's own streams, and returns its exit
// code. `runners` as in RunCli().
int RunProgram(int argc, char** argv, const Hdf5Runners& runners);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_PROGRAM_H_
