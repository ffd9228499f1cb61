#include "cli/verbs/hdf5_runners.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/child.h"
#include "cli/process/install_dirs.h"

namespace h5mirror::tools {
namespace {

// The dynamic linker's exit code where a library is missing. The helper itself has none like it.
constexpr int kCannotLoad = 127;

}  // namespace

absl::StatusOr<int> RunHdf5Helper(const char* what, const std::vector<std::string>& arguments) {
  auto helper = FindHelper(kDiffHelperFile);
  if (!helper.ok()) {
    return absl::NotFoundError(StrCat(what,
                                      " looks into HDF5 files with a helper that is built where "
                                      "there is HDF5 1.14 or later: ",
                                      ToStd(helper.status().message())));
  }
  std::vector<std::string> command{helper->string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // Without us nobody hears of its findings, and it changes no file.
  H5M_ASSIGN_OR_RETURN(const int code, RunInOurPlace(command, {}, WhenWeEnd::kEnds));
  if (code != kCannotLoad) return code;
  return absl::NotFoundError(StrCat(what, " looks into HDF5 files with ", helper->string(),
                                    ", which does not start: install h5mirror and HDF5 anew"));
}

}  // namespace h5mirror::tools
