#include "server/cluster/open_cell.h"

#include "base/status_macros.h"
#include "server/cluster/guarded_file.h"

namespace h5mirror::server {

void OpenCell::GuardArchive() {
  if (opened_.archive == nullptr) return;
  opened_.archive->SetGuard([&ownership = ownership_, cell = cell_, epoch = epoch_] {
    return AskAgain(ownership.BeforeAck(cell, epoch));
  });
}

void OpenCell::MakeOuter(store::VersionInfo& version) const {
  if (version.source.has_value()) version.source->name = Outer(version.source->name);
}

std::shared_ptr<OpenCell> OpenCell::Enter() {
  absl::MutexLock lock(&mutex_);
  if (is_retired_) return nullptr;
  ++in_hand_;
  return {this, [cell = shared_from_this()](OpenCell*) {
            absl::MutexLock leave(&cell->mutex_);
            --cell->in_hand_;
          }};
}

absl::StatusOr<std::shared_ptr<OpenCell>> OpenCell::Hold() {
  std::shared_ptr<OpenCell> held = Enter();
  if (held == nullptr) return absl::UnavailableError(ToAbsl(kHandedOver));
  H5M_RETURN_IF_ERROR(Check());
  return held;
}

size_t OpenCell::in_hand() const {
  absl::MutexLock lock(&mutex_);
  return in_hand_;
}

std::optional<std::string> OpenCell::InnerId(std::string_view id) const {
  if (cell_.empty()) return std::string(id);
  if (!id.starts_with(cell_) || id.size() <= cell_.size() || id[cell_.size()] != ':') {
    return std::nullopt;
  }
  return std::string(id.substr(cell_.size() + 1));
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
