// Steps that archive.
#include <climits>
#include <utility>

#include "base/strings.h"
#include "tests/crash/player.h"

namespace h5mirror::store {

void Player::Archive(const std::string& file, int step_max) {
  if (!Begun(StrCat("archive ", file))) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    promises_.files[file].is_archived = true;
  }
  auto job = opened->StartArchive({SealSegment::kYes, 0});
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
}

void Player::RandomArchive(const std::string& file) {
  if (!files_.contains(file) || !files_.at(file)->GetVersion(0).ok()) return;
  Archive(file, Random(2) ? INT_MAX : static_cast<int>(Random(12)));
}

}  // namespace h5mirror::store
