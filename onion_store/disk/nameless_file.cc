#include "onion_store/disk/nameless_file.h"

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {

absl::StatusOr<std::unique_ptr<EnvFile>> OpenNameless(EnvTree& tree, std::string_view directory) {
  static std::atomic<uint64_t> counter{0};
  const std::string name = StrCat(directory, "/run-", counter++);
  H5M_ASSIGN_OR_RETURN(auto file, tree.Open(name, OpenKind::kCreateFresh, 0600));
  H5M_RETURN_IF_ERROR(tree.Remove(name));
  return file;
}

}  // namespace h5mirror::store
