// The local engine's store. Its sources: store_impl.cc (opening, files, closing), store_names.cc
// (moving, removing, undeleting), store_purge.cc (deleting) and store_fork.cc.
#ifndef H5MIRROR_ONION_STORE_STORE_STORE_IMPL_H_
#define H5MIRROR_ONION_STORE_STORE_STORE_IMPL_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/shared/store_context.h"
#include "onion_store/store.h"
#include "onion_store/store/relocation.h"

namespace h5mirror::store {

// Thread-safe.
class StoreImpl final : public Store, public StoreHealth {
 public:
  explicit StoreImpl(std::shared_ptr<StoreContext> context);
  ~StoreImpl() override { Close(absl::Seconds(5)).IgnoreError(); }

  // Recovers the files that a crash left unclean, in the background.
  void RecoverUnclean();
  // Deletes the rest of removed files that a call has begun to delete. If a file has objects in an
  // archive, only with kMay.
  enum class ArchiveCalls : uint8_t { kNone, kMay };
  absl::Status EraseAllGone(ArchiveCalls calls);

  absl::Status Close(absl::Duration deadline) override;
  absl::StatusOr<std::shared_ptr<File>> OpenFile(std::string_view name) override;
  absl::StatusOr<std::shared_ptr<File>> OpenOrCreateFile(std::string_view name,
                                                         uint32_t page_size_bytes) override;
  absl::StatusOr<VersionInfo> Fork(File& source, VersionNumber version, std::string_view new_name,
                                   const ForkRequest& request) override;
  absl::StatusOr<std::vector<FileSummary>> List(std::string_view directory,
                                                std::string_view after_name, size_t limit) override;
  absl::StatusOr<FileInfo> Glance(const FileSummary& listed) override;
  absl::Status Move(std::string_view name, std::string_view new_name) override;
  absl::StatusOr<RemovedFile> Remove(std::string_view name, const Provenance& who,
                                     absl::Duration keep) override;
  absl::StatusOr<std::vector<RemovedFile>> ListRemoved() override;
  absl::StatusOr<std::string> Undelete(std::string_view removal_id,
                                       std::string_view new_name) override;
  absl::StatusOr<int> PurgeRemoved(absl::Time now) override;
  absl::Status PurgeOneRemoved(std::string_view removal_id) override;
  absl::StatusOr<FileOwner> OwnerOf(std::string_view name) override;
  void SetOwnerListener(OwnerListener listener) override {
    absl::MutexLock lock(&context_->owner_listener_mutex);
    context_->owner_listener = std::move(listener);
  }

  std::vector<StoreNotice> TakeNotices() override { return context_->notices.Take(); }
  uint64_t lost_pages() const override { return context_->lost_pages; }
  absl::Time Now() override { return context_->clock.Now(); }
  std::string DoubtOfTime() override { return context_->clock.Doubt(); }
  absl::Duration ClockAhead() override { return context_->clock.Ahead(); }
  void Tend() override { context_->clock.Tend(); }

  bool RunBackground() override { return context_->background->RunDue(); }
  const std::array<uint8_t, 16>& incarnation() const override { return incarnation_; }
  void SetCutListener(CutListener listener) override {
    absl::MutexLock lock(&context_->cut_listener_mutex);
    context_->cut_listener = std::move(listener);
  }
  uint64_t memory_used_bytes() const override { return context_->budget.used_bytes(); }
  absl::StatusOr<uint64_t> FreeDiskBytes() const override { return context_->tree->FreeBytes(); }
  uint64_t disk_bytes() const override { return context_->tree->TotalBytes().value_or(0); }
  absl::StatusOr<HistorySizes> Measure(std::string_view name, WithHead with_head) override;
  absl::StatusOr<std::vector<std::string>> CheckedFiles() override;
  absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() override;
  void StopHistory(std::string_view name) override { context_->history_stops.Stop(name); }
  void ResumeHistory(std::string_view name) override { context_->history_stops.Resume(name); }

 private:
  // One for each name. One thread at a time loads its file; other names load meanwhile.
  struct Slot {
    bool loading = false;
    std::weak_ptr<FileImpl> file;
  };

  // ---- store_impl.cc ----
  absl::StatusOr<std::shared_ptr<FileImpl>> Find(std::string_view name,
                                                 FileImpl::IfMissing if_missing,
                                                 uint32_t page_size_bytes);
  // As Find(), but keeps what is known of the closed file.
  absl::StatusOr<std::shared_ptr<FileImpl>> FindToLook(std::string_view name,
                                                       FileImpl::IfMissing if_missing,
                                                       uint32_t page_size_bytes);
  // nullptr: the file is closed, or there is no such file.
  std::shared_ptr<FileImpl> FindOpen(std::string_view name);
  // Sometimes forgets the names whose files have no holder.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecoverMarked(const std::string& mark);
  // Removes the files that a first session or a fork left when a crash cut it short: `name` has no
  // version.
  void ClearAway(const std::string& name);
  // The files named in `directory`. Marks of files that are gone are removed.
  absl::StatusOr<std::vector<std::string>> MarkedFiles(std::string_view directory);
  // The name of a file in one of `.h5mirror/open`, `.h5mirror/pruning` and `.h5mirror/checked`.
  absl::StatusOr<std::string> ReadMark(const std::string& mark);
  std::vector<std::shared_ptr<FileImpl>> LiveFiles();
  void TellOfUnreadable(const std::string& directory);

  // ---- store_fork.cc ----
  // The version that an earlier call of this request made. kAlreadyExists: another request made
  // `taken`.
  static absl::StatusOr<VersionInfo> FindFork(FileImpl& taken, const ForkRequest& request);

  // ---- store_purge.cc ----
  // Deletes `place`, "removed/gone-ID". If objects of it are left, the rows that name them are left
  // too. After a failed call of the archive, `calls` is kNone.
  absl::Status EraseOneGone(const std::string& place, ArchiveCalls& calls);
  absl::Status PurgeRemovedFile(std::string_view removal_id, ArchiveCalls& calls);

  // ---- store_names.cc ----
  // While it lives, no other call gets the files of `names`.
  class Reservation;
  // Ends the life of the object of a reserved name, once everything is durable and applied.
  enum class Damaged : uint8_t { kRefuse, kAccept };
  // Returns the number of its tags; 0 for a damaged file.
  absl::StatusOr<uint64_t> Vacate(const std::string& name, Damaged damaged, std::string_view why);
  void ForgetOwners(absl::Span<const std::string> names);
  void TellOfOwners(absl::Span<const std::string> names);
  absl::Status DropNothing(const std::string& name);
  // kAlreadyExists: the name is taken. Also makes the directories above it; their `use` must live
  // until the name exists.
  absl::Status PrepareTarget(const std::string& name, NameDirectories::Use& use);
  // A relocation that has begun is finished here, at the next call of this kind, or at the next
  // start.
  absl::Status Relocate(Relocation relocation);
  // kUnavailable: a move that concerns one of `names` could not be finished.
  absl::Status FinishPending(absl::Span<const std::string> names);
  // A rename changes the head's ctime. Notes the new one; else the next open would suspect a change
  // from outside, and read all of the head.
  void NoteMovedHead(const std::string& name);

  const std::shared_ptr<StoreContext> context_;
  const std::array<uint8_t, 16> incarnation_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 64;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // The most directories that notices have named.
  static constexpr size_t kUnreadableMax = 1000;
  absl::flat_hash_set<std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  // Moves that failed between their renames. Their names cannot be used until they are finished.
  std::vector<Relocation> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_STORE_IMPL_H_
