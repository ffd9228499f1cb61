// Steps that drop versions and change names.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "tests/crash/player.h"

namespace h5mirror::store {

void Player::Prune(const std::string& file, std::vector<VersionNumber> versions, int step_max) {
  if (!Begun(StrCat("prune ", versions.size(), " versions of ", file))) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  auto needed = opened->OldestNeeded();
  if (!Ok(needed.status())) return;
  std::erase_if(versions, [&](VersionNumber version) { return version >= *needed; });
  {
    const size_t changes = env_.change_count();
    absl::MutexLock lock(&mutex_);
    for (VersionNumber version : versions) {
      promises_.files[file].droppable.push_back({version, changes, SIZE_MAX});
    }
  }
  auto job = opened->StartPrune(versions);
  if (!Ok(job.status())) return;
  PruneProgress progress;
  for (int i = 0; i < step_max && !progress.done; ++i) {
    auto step = (*job)->Step();
    if (!Ok(step.status())) return;
    progress = *step;
    for (Export& one : exports_) {
      if (!Ok(ReadUpTo(one, one.read_bytes + options_.page_size_bytes))) return;
    }
  }
  if (!progress.done) return;
  const size_t changes = env_.change_count();
  absl::MutexLock lock(&mutex_);
  for (FilePromises::Droppable& one : promises_.files[file].droppable) {
    if (std::find(versions.begin(), versions.end(), one.version) != versions.end()) {
      one.gone_count = std::min(one.gone_count, changes);
    }
  }
}

const std::string& Player::NameOf(const std::string& file) const {
  auto found = names_.find(file);
  return found == names_.end() ? file : found->second;
}

void Player::ChangeName(const std::string& file, const std::string& new_name,
                        absl::FunctionRef<absl::Status()> call) {
  {
    absl::MutexLock lock(&mutex_);
    promises_.files[file].name_changes.push_back({new_name, false, SIZE_MAX});
  }
  const bool done = Ok(call());
  files_.erase(file);  // Under its new name the file is another object.
  if (!done) return;
  names_[file] = new_name;
  const size_t changes = env_.change_count();
  absl::MutexLock lock(&mutex_);
  FilePromises::NameChange& change = promises_.files[file].name_changes.back();
  change.acked = true;
  change.change_count = changes;
}

void Player::Move(const std::string& file, const std::string& new_name) {
  if (!Begun(StrCat("move ", NameOf(file), " to ", new_name))) return;
  ChangeName(file, new_name, [&] { return store_->Move(NameOf(file), new_name); });
}

void Player::Remove(const std::string& file) {
  if (!Begun(StrCat("remove ", NameOf(file)))) return;
  ChangeName(file, FilePromises::kRemoved, [&] {
    auto removed = store_->Remove(NameOf(file), {}, absl::Hours(24));
    if (removed.ok()) removals_[file] = removed->id;
    return removed.status();
  });
}

void Player::Undelete(const std::string& file, const std::string& new_name) {
  if (!Begun(StrCat("undelete ", file, " as ", new_name))) return;
  ChangeName(file, new_name,
             [&] { return store_->Undelete(removals_.at(file), new_name).status(); });
}

void Player::Purge(const std::string& file) {
  if (!Begun("purge what was removed")) return;
  ChangeName(file, FilePromises::kPurged, [&]() -> absl::Status {
    auto count = store_->PurgeRemoved(absl::InfiniteFuture());
    if (!count.ok()) return count.status();
    // An unreadable one is left to the next purge.
    return *count > 0 ? absl::OkStatus() : absl::InternalError(file + " is left to the next purge");
  });
}

}  // namespace h5mirror::store
