// The files of a store, from its directories.
#ifndef H5MIRROR_ONION_STORE_STORE_FILE_LIST_H_
#define H5MIRROR_ONION_STORE_STORE_FILE_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/store.h"

namespace h5mirror::store {

struct FileList {
  std::vector<FileSummary> files;
  // Directories that this process may not read, such as lost+found: `files` has nothing below them.
  std::vector<std::string> unreadable;
};

// See Store::List(). kPermissionDenied: `directory` itself may not be read. Costs one readdir() of
// each directory on the way, and a stat of each file that it returns.
absl::StatusOr<FileList> ListFiles(EnvTree& tree, std::string_view directory,
                                   std::string_view after_name, size_t limit);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_FILE_LIST_H_
