#include "onion_store/disk/durable_names.h"

#include "base/status_macros.h"

namespace h5mirror::store {
namespace {
constexpr size_t kNamesMax = 10'000;  // beyond it all names are forgotten: each costs one more sync
}

absl::Status DurableNames::Sync(EnvTree& tree, const std::string& name) {
  // The inode tells a directory from an earlier one of the same name.
  H5M_ASSIGN_OR_RETURN(const FileStat stat, tree.Stat(name));
  {
    absl::MutexLock lock(&mutex_);
    auto known = inodes_.find(name);
    if (known != inodes_.end() && known->second == stat.inode) return absl::OkStatus();
  }
  const size_t slash = name.rfind('/');
  H5M_RETURN_IF_ERROR(tree.SyncDirectory(slash == std::string::npos ? "" : name.substr(0, slash)));
  absl::MutexLock lock(&mutex_);
  if (inodes_.size() >= kNamesMax) inodes_.clear();
  inodes_[name] = stat.inode;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
