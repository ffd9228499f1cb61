// h5mirror-diff, the helper of `h5mirror diff`, `log FILE:/PATH`, `blame`, `find`, `watch` and
// `verify --open-versions`: the same command line, with HDF5 linked in.
#include "cli/program.h"
#include "h5diff/compare_cuts.h"
#include "h5diff/open_version.h"
#include "h5diff/run_diff.h"
#include "h5diff/run_find.h"
#include "h5diff/run_log.h"

int main(int argc, char** argv) {
  return h5mirror::tools::RunProgram(
      argc, argv,
      {h5mirror::tools::RunDiff, h5mirror::tools::OpenVersion, h5mirror::tools::MakeCutComparer,
       h5mirror::tools::RunObjectLog, h5mirror::tools::RunBlame, h5mirror::tools::RunFind});
}
