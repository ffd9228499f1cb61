// h5mirror-diff, the helper of `h5mirror diff`, `watch` and `verify --open-versions`: the same
// command line, with HDF5 linked in.
#include "tools/diff/compare_cuts.h"
#include "tools/diff/open_version.h"
#include "tools/diff/run_diff.h"
#include "tools/program.h"

int main(int argc, char** argv) {
  return h5mirror::tools::RunProgram(
      argc, argv,
      {h5mirror::tools::RunDiff, h5mirror::tools::OpenVersion, h5mirror::tools::MakeCutComparer});
}
