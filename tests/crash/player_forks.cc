// Steps that fork files and promote forks.
#include "base/strings.h"
#include "tests/crash/player.h"

namespace h5mirror::store {

void Player::Fork(const std::string& file, VersionNumber version, const std::string& new_name) {
  if (!Begun(StrCat("fork ", file, "@", version, " as ", new_name))) return;
  const std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  const auto target = opened->GetVersion(version);
  if (!Ok(target.status())) return;
  const Bytes wanted = GoldenOf(file, target->cut);
  Attempt(new_name, wanted);
  {
    absl::MutexLock lock(&mutex_);
    promises_.files[new_name].forked = {opened->file_id(), target->version};
  }
  // The player holds the file from its first moment on. Else the background may close it at any
  // time before, and the record would differ from run to run.
  if (pace_ == Pace::kInStep && FileOf(new_name) == nullptr) return;
  ForkRequest request;
  request.request_id = RandomId();
  request.access = FilePromises().Local();
  const auto made = store_->Fork(*opened, target->version, new_name, request);
  const size_t changes = env_.change_count();
  if (!Ok(made.status())) return;
  NoteMade(new_name, wanted, *made, changes);
  if (FileOf(new_name) != nullptr) Settle(new_name);
}

void Player::Promote(const std::string& fork, const std::string& file) {
  if (!Begun(StrCat("promote ", fork, " to ", file))) return;
  const std::shared_ptr<File> from = FileOf(fork);
  const std::shared_ptr<File> into = FileOf(file);
  if (from == nullptr || into == nullptr) return;
  const auto target = from->GetVersion(0);
  if (!Ok(target.status())) return;
  const Bytes wanted = GoldenOf(fork, target->cut);
  Attempt(file, wanted);
  PromoteRequest request;
  request.version = target->version;
  request.request_id = RandomId();
  const auto made = into->Promote(*from, request);
  const size_t changes = env_.change_count();
  if (!Ok(made.status())) return;
  NoteMade(file, wanted, made->version, changes);
  Settle(file);
}

}  // namespace h5mirror::store
