// The command line as a program: what h5mirror and its helper share.
#ifndef H5MIRROR_TOOLS_PROGRAM_H_
#define H5MIRROR_TOOLS_PROGRAM_H_

#include "tools/verb_diff.h"

namespace h5mirror::tools {

// What main() does: runs the command line on the process's own streams and returns its exit code.
// `runner` as in RunCli().
int RunProgram(int argc, char** argv, const DiffRunner& runner);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_PROGRAM_H_
