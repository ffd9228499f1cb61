// Steps that archive.
#include <climits>
#include <utility>

#include "base/strings.h"
#include "tests/crash/player.h"

namespace h5mirror::store {

void Player::Archive(const std::string& file, int step_max) {
  if (!Begun(StrCat("archive ", file))) return;
  RunArchive(file, {SealSegment::kYes, 0}, step_max);
}

void Player::ArchiveCopy(const std::string& file, int step_max) {
  if (!Begun(StrCat("archive ", file, " with a copy"))) return;
  RunArchive(file, {SealSegment::kYes, 0, store::ArchiveCopy::kKeep}, step_max);
}

void Player::RunArchive(const std::string& file, const ArchiveRequest& request, int step_max) {
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    promises_.files[file].is_archived = true;
    if (request.copy == store::ArchiveCopy::kKeep) promises_.files[file].is_copied = true;
  }
  auto job = opened->StartArchive(request);
  if (absl::IsNotFound(job.status()) || !Ok(job.status())) return;
  ArchiveProgress progress;
  for (int i = 0; i < step_max && !progress.done; ++i) {
    auto step = (*job)->Step();
    if (!Ok(step.status())) return;
    progress = *step;
    for (Export& one : exports_) {
      if (!Ok(ReadUpTo(one, one.read_bytes + options_.page_size_bytes))) return;
    }
  }
  if (progress.copied_version == 0) return;
  const auto version = opened->GetVersion(progress.copied_version);
  if (!version.ok()) return;
  absl::MutexLock lock(&mutex_);
  promises_.files[file].copies.push_back({version->cut, version->version, env_.change_count()});
}

void Player::RandomArchive(const std::string& file) {
  if (!files_.contains(file) || !files_.at(file)->GetVersion(0).ok()) return;
  bool is_copied;
  {
    absl::MutexLock lock(&mutex_);
    is_copied = promises_.files[file].is_copied;
  }
  // A job without copies deletes the existing copies.
  if (is_copied || Random(3) == 0) {
    ArchiveCopy(file, Random(2) ? INT_MAX : static_cast<int>(Random(24)));
  } else {
    Archive(file, Random(2) ? INT_MAX : static_cast<int>(Random(12)));
  }
}

}  // namespace h5mirror::store
