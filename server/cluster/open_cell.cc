#include "server/cluster/open_cell.h"

#include "server/cluster/guarded_file.h"

namespace h5mirror::server {

void OpenCell::MakeOuter(store::VersionInfo& version) const {
  if (version.source.has_value()) version.source->name = Outer(version.source->name);
}

std::shared_ptr<store::File> OpenCell::Guard(std::shared_ptr<store::File> file) {
  absl::MutexLock lock(&mutex_);
  std::weak_ptr<GuardedFile>& known = files_[file.get()];
  std::shared_ptr<GuardedFile> guarded = known.lock();
  if (guarded == nullptr) {
    guarded = std::make_shared<GuardedFile>(shared_from_this(), std::move(file));
    known = guarded;
  }
  return guarded;
}

void OpenCell::Forget(const store::File* file) {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(file);
  // Another object may have taken its place meanwhile.
  if (found != files_.end() && found->second.expired()) files_.erase(found);
}

}  // namespace h5mirror::server
