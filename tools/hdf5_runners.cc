#include "tools/hdf5_runners.h"

#include "base/strings.h"
#include "tools/child.h"
#include "tools/install_dirs.h"

namespace h5mirror::tools {

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
  return RunInOurPlace(command, {});
}

}  // namespace h5mirror::tools
