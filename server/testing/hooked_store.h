// A store in which a test can act between a look at a file's owner and the open of the file.
#ifndef H5MIRROR_SERVER_TESTING_HOOKED_STORE_H_
#define H5MIRROR_SERVER_TESTING_HOOKED_STORE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "onion_store/store.h"

namespace h5mirror::server {

// Thread-safe.
class HookedStore final : public store::Store {
 public:
  explicit HookedStore(std::unique_ptr<store::Store> inner) : inner_(std::move(inner)) {}

  // Puts one in front of `store`, which owns it.
  static HookedStore* PutBefore(std::unique_ptr<store::Store>& store) {
    auto hooked = std::make_unique<HookedStore>(std::move(store));
    HookedStore* const it = hooked.get();
    store = std::move(hooked);
    return it;
  }

  // The inner store, so that a test can change it unseen by the code under test.
  store::Store& inner() { return *inner_; }
  // Calls `then` once: at the next open of `name` that follows a look at its owner. So an open acts
  // that has waited for a move.
  void BeforeOpen(std::string name, std::function<void()> then) {
    absl::MutexLock lock(&mutex_);
    name_ = std::move(name);
    then_ = std::move(then);
    has_looked_ = false;
  }
  // Whether it has been called.
  bool has_acted() {
    absl::MutexLock lock(&mutex_);
    return then_ == nullptr;
  }
  // From now on nobody hears that a name has got another file or owner.
  void MuteOwners() { is_mute_ = true; }
  // While true, no owner can be looked up.
  void FailOwners(bool fails) { fails_owners_ = fails; }

  // While true, no file is measured, and none that was removed is listed: kUnavailable, as in a
  // cell that is given away.
  void BeAway(bool is_away) { is_away_ = is_away; }

  absl::StatusOr<std::shared_ptr<store::File>> OpenFile(std::string_view name) override {
    std::function<void()> then;
    {
      absl::MutexLock lock(&mutex_);
      if (has_looked_ && name == name_) then.swap(then_);
    }
    if (then) then();
    return inner_->OpenFile(name);
  }
  absl::StatusOr<store::FileOwner> OwnerOf(std::string_view name) override {
    if (fails_owners_) return absl::InternalError("the disk");
    {
      absl::MutexLock lock(&mutex_);
      has_looked_ = has_looked_ || name == name_;
    }
    return inner_->OwnerOf(name);
  }
  void SetOwnerListener(OwnerListener listener) override {
    if (listener == nullptr) return inner_->SetOwnerListener(nullptr);
    inner_->SetOwnerListener([this, listener = std::move(listener)](const std::string& name) {
      if (!is_mute_) listener(name);
    });
  }

  // ---- The rest is the store's ----

  absl::Status Close(absl::Duration deadline) override { return inner_->Close(deadline); }
  void SetCutListener(CutListener listener) override {
    inner_->SetCutListener(std::move(listener));
  }
  absl::StatusOr<std::shared_ptr<store::File>> OpenOrCreateFile(std::string_view name,
                                                                uint32_t page_size_bytes) override {
    return inner_->OpenOrCreateFile(name, page_size_bytes);
  }
  absl::StatusOr<store::VersionInfo> Fork(store::File& source, store::VersionNumber version,
                                          std::string_view new_name,
                                          const store::ForkRequest& request) override {
    return inner_->Fork(source, version, new_name, request);
  }
  absl::StatusOr<std::vector<store::FileSummary>> List(std::string_view directory,
                                                       std::string_view after_name,
                                                       size_t limit) override {
    return inner_->List(directory, after_name, limit);
  }
  absl::Status Move(std::string_view name, std::string_view new_name) override {
    return inner_->Move(name, new_name);
  }
  absl::StatusOr<store::RemovedFile> Remove(std::string_view name, const store::Provenance& who,
                                            absl::Duration keep) override {
    return inner_->Remove(name, who, keep);
  }
  absl::StatusOr<std::vector<store::RemovedFile>> ListRemoved() override {
    if (is_away_) return absl::UnavailableError("another server's");
    return inner_->ListRemoved();
  }
  absl::StatusOr<std::string> Undelete(std::string_view removal_id,
                                       std::string_view new_name) override {
    return inner_->Undelete(removal_id, new_name);
  }
  absl::StatusOr<int> PurgeRemoved(absl::Time now) override { return inner_->PurgeRemoved(now); }
  absl::Status PurgeOneRemoved(std::string_view removal_id) override {
    return inner_->PurgeOneRemoved(removal_id);
  }
  absl::StatusOr<std::vector<std::string>> CheckedFiles() override {
    return inner_->CheckedFiles();
  }
  absl::StatusOr<store::HistorySizes> Measure(std::string_view name,
                                              store::WithHead with_head) override {
    if (is_away_) return absl::UnavailableError("another server's");
    return inner_->Measure(name, with_head);
  }
  absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() override {
    return inner_->UnfinishedPrunes();
  }
  void StopHistory(std::string_view name) override { inner_->StopHistory(name); }
  void ResumeHistory(std::string_view name) override { inner_->ResumeHistory(name); }
  bool RunBackground() override { return inner_->RunBackground(); }
  const std::array<uint8_t, 16>& incarnation() const override { return inner_->incarnation(); }
  uint64_t memory_used_bytes() const override { return inner_->memory_used_bytes(); }
  absl::StatusOr<uint64_t> FreeDiskBytes() const override { return inner_->FreeDiskBytes(); }
  uint64_t disk_bytes() const override { return inner_->disk_bytes(); }

 private:
  const std::unique_ptr<store::Store> inner_;
  std::atomic<bool> is_mute_ = false;
  std::atomic<bool> fails_owners_ = false;
  std::atomic<bool> is_away_ = false;
  absl::Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> then_ ABSL_GUARDED_BY(mutex_);
  bool has_looked_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_HOOKED_STORE_H_
