#include "onion_store/disk/name_directories.h"

namespace h5mirror::store {
namespace {

std::vector<std::string> DirectoriesAbove(std::string_view name) {
  std::vector<std::string> above;
  for (size_t slash = name.find('/'); slash != std::string_view::npos;
       slash = name.find('/', slash + 1)) {
    above.emplace_back(name.substr(0, slash));
  }
  return above;
}

}  // namespace

NameDirectories::Use::Use(NameDirectories& directories, std::string_view name)
    : directories_(directories), above_(DirectoriesAbove(name)) {
  absl::MutexLock lock(&directories_.mutex_);
  for (const std::string& directory : above_) ++directories_.entries_[directory].uses;
}

NameDirectories::Use::~Use() {
  absl::MutexLock lock(&directories_.mutex_);
  for (auto directory = above_.rbegin(); directory != above_.rend(); ++directory) {
    const auto found = directories_.entries_.find(*directory);
    if (--found->second.uses > 0) continue;
    const Entry ended = found->second;
    directories_.entries_.erase(found);
    if (!ended.was_made || !ended.is_abandoned || ended.stays) continue;
    if (!directories_.tree_.RemoveDirectory(*directory).ok()) continue;  // It is not empty.
    // The next directory of this name may get the inode of this one.
    directories_.durable_names_.Forget(*directory);
  }
}

absl::Status NameDirectories::Use::Make(uint32_t mode_bits) {
  for (const std::string& directory : above_) {
    const absl::Status made = directories_.tree_.MakeDirectory(directory, mode_bits);
    if (absl::IsAlreadyExists(made)) continue;
    if (!made.ok()) return made;
    absl::MutexLock lock(&directories_.mutex_);
    directories_.entries_[directory].was_made = true;
  }
  return absl::OkStatus();
}

void NameDirectories::Use::Abandon() {
  absl::MutexLock lock(&directories_.mutex_);
  for (const std::string& directory : above_) directories_.entries_[directory].is_abandoned = true;
}

void NameDirectories::Use::Keep() {
  absl::MutexLock lock(&directories_.mutex_);
  for (const std::string& directory : above_) directories_.entries_[directory].stays = true;
}

}  // namespace h5mirror::store
