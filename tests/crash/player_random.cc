// Steps by chance.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "tests/crash/player.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPagesMax = 24;

}  // namespace

VersionNumber Player::RandomVersion(const std::string& file) {
  if (!files_.contains(file)) return 0;
  auto newest = files_.at(file)->GetVersion(0);
  if (!newest.ok()) return 0;
  const auto version = 1 + static_cast<VersionNumber>(Random(newest->version));
  absl::MutexLock lock(&mutex_);
  return promises_.files[file].IsDroppable(version) ? 0 : version;
}

void Player::RandomTag(const std::string& file) {
  const std::string tag = StrCat("tag-", Random(3));
  if (Random(3) == 0 && files_.at(file)->FindVersionTagged(tag).ok()) return Untag(file, tag);
  if (const VersionNumber version = RandomVersion(file); version > 0) Tag(file, version, tag);
}

void Player::RandomPrune(const std::string& file) {
  if (!files_.contains(file)) return;
  auto newest = files_.at(file)->GetVersion(0);
  if (!newest.ok()) return;
  std::vector<VersionNumber> doomed;
  const uint64_t one_of = 1 + Random(4);
  for (VersionNumber version = 1; version < newest->version; ++version) {
    if (Random(one_of) == 0) doomed.push_back(version);
  }
  Prune(file, std::move(doomed), Random(2) ? INT_MAX : static_cast<int>(Random(8)));
}

void Player::RandomName(const std::string& file) {
  if (!files_.contains(file) || !files_.at(file)->GetVersion(0).ok()) return;
  if (Random(2)) Remove(file);
  const std::string name = Random(2) ? file : StrCat("moved/", Random(2), "/", file);
  if (!status_.ok() || name == NameOf(file)) return;
  NameOf(file) == FilePromises::kRemoved ? Undelete(file, name) : Move(file, name);
}

void Player::RandomFork(const std::string& file) {
  constexpr int kForksMax = 2;  // each check reads them, and no step writes them
  const VersionNumber version = RandomVersion(file);
  if (version == 0 || fork_count_ == kForksMax) return;
  Fork(file, version, StrCat("f/fork-", fork_count_++, ".h5"));
}

void Player::RandomStep(const std::string& file) {
  if (!status_.ok()) return;
  const double page = static_cast<double>(Random(kPagesMax * 8)) / 8;
  const double count = 0.1 + static_cast<double>(Random(24)) / 8;
  if (Random(12) == 0) return RandomPrune(file);
  if (Random(24) == 0) return RandomFork(file);
  if (Random(16) == 0) return RandomArchive(file);
  if (!writers_.contains(file)) {
    if (Random(8) == 0) return RandomName(file);
    if (Random(4) == 0) {
      if (const VersionNumber version = RandomVersion(file); version > 0) {
        return Rollback(file, version);
      }
    }
    return Begin(file, Random(5) ? SessionStart::kContinue : SessionStart::kNewGeneration);
  }
  switch (Random(14)) {
    case 12:
      return RandomTag(file);
    case 13:
      return TakeOver(file);
    case 0:
      return End(file, Random(2) ? SessionEnd::kClean : SessionEnd::kLost);
    case 1:
      return Truncate(file, page);
    case 2:
      return Tick(file);
    case 3:
      return Sync(file);
    case 4:
    case 5:
      return Commit(file);
    case 6:
      return CutAndGoOn(file, BarrierKind::kCommit);
    case 7:
      return Zeros(file, page, count);
    default:
      return Write(file, page, count);
  }
}

}  // namespace h5mirror::store
