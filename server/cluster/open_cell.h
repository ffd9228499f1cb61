// A cell whose store is open in this process.
#ifndef H5MIRROR_SERVER_CLUSTER_OPEN_CELL_H_
#define H5MIRROR_SERVER_CLUSTER_OPEN_CELL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "archive/root_archive.h"
#include "base/env.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "server/cluster/ack_queue.h"
#include "server/cluster/ownership.h"

namespace h5mirror::server {

// A store, and the file system that it is on.
struct OpenedStore {
  std::unique_ptr<Env> env;  // of its own; null: one that outlives it
  std::unique_ptr<store::Store> store;
  // Called once after `env` is gone, where the store was closed in order. May wait. Null: not.
  std::function<void()> on_unmounted = nullptr;
  // The store's own; null: it has none.
  std::shared_ptr<archive::RootArchive> archive = nullptr;
};

class GuardedFile;

// Names here are those of clients, relative to the root; the store's are relative to the cell.
// Shared by its files, which may live longer than it is served.
//
// Thread-safe.
class OpenCell : public std::enable_shared_from_this<OpenCell> {
 public:
  // `ownership` and `acks` must outlive this.
  OpenCell(std::string cell, uint64_t epoch, OpenedStore opened, Ownership& ownership,
           AckQueue& acks)
      : cell_(std::move(cell)),
        prefix_(cell_.empty() ? "" : cell_ + "/"),
        epoch_(epoch),
        opened_(std::move(opened)),
        ownership_(ownership),
        acks_(acks) {
    GuardArchive();
  }

  const std::string& cell() const { return cell_; }
  uint64_t epoch() const { return epoch_; }
  store::Store& store() { return *opened_.store; }
  // Null: the cell has none. Lives as long as this.
  archive::RootArchive* archive() const { return opened_.archive.get(); }
  AckQueue& acks() { return acks_; }
  // Expires when store and file system are gone: with the last file of this cell.
  std::weak_ptr<void> mounted() const { return mounted_; }
  // OpenedStore::on_unmounted, once. For one thread.
  std::function<void()> TakeOnUnmounted() { return std::exchange(opened_.on_unmounted, nullptr); }

  // "CELL/" or "", with which the names of its files begin.
  const std::string& prefix() const { return prefix_; }
  std::string Outer(std::string_view name) const { return prefix_ + std::string(name); }
  // `name` begins with prefix().
  std::string Inner(std::string_view name) const {
    return std::string(name.substr(prefix_.size()));
  }
  // Turns the names in `version` from the store's into the clients'.
  void MakeOuter(store::VersionInfo& version) const;

  // OK: this server may answer for the cell. Looks into memory only. kUnavailable: not now, or not
  // any more.
  absl::Status Check() {
    if (is_retired_) return absl::UnavailableError(ToAbsl(kHandedOver));
    return AskAgain(ownership_.Check(cell_, epoch_));
  }
  // True: another server owns the cell by now, or none does. False also while that is unknown.
  bool IsGivenAway() { return absl::IsFailedPrecondition(ownership_.Check(cell_, epoch_)); }
  // As Check(), after a read of the registry. To be asked after a sync, before it is acked.
  absl::Status BeforeAck() { return AskAgain(ownership_.BeforeAck(cell_, epoch_)); }

  // An answer of the store, if this server may give it.
  template <typename Value>
  absl::StatusOr<Value> Fresh(absl::StatusOr<Value> value) {
    if (!value.ok()) return value;
    if (absl::Status status = Check(); !status.ok()) return status;
    return value;
  }
  // The answer of a change that is durable, if this server may give it.
  template <typename Value>
  absl::StatusOr<Value> Acked(absl::StatusOr<Value> value) {
    if (!value.ok()) return value;
    if (absl::Status status = BeforeAck(); !status.ok()) return status;
    return value;
  }
  absl::Status Acked(const absl::Status& status) { return status.ok() ? BeforeAck() : status; }

  // For one call of the store: the cell, which counts as in hand until the last copy of it is gone.
  // Null: it is retired.
  std::shared_ptr<OpenCell> Enter();
  // The same, for a change that an open file makes. kUnavailable: it is retired, or as Check().
  absl::StatusOr<std::shared_ptr<OpenCell>> Hold();
  // `is_retired`: the cell takes no new calls, because it goes to another server. Acks of earlier
  // calls still pass. Calls to its archive end, since they might take minutes.
  void SetRetired(bool is_retired) {
    is_retired_ = is_retired;
    if (opened_.archive != nullptr) opened_.archive->SetBrokenOff(is_retired);
  }
  // Calls in hand.
  size_t in_hand() const;

  static constexpr std::string_view kHandedOver =
      "the file's cell is being handed over to another server; safe to retry";

  // The ID of a removal by which clients name it: "CELL:ID". The store's IDs are unique in a cell
  // only. In the root as the only cell it is the store's own.
  std::string OuterId(std::string_view id) const {
    return cell_.empty() ? std::string(id) : StrCat(cell_, ":", id);
  }
  // The store's ID, of one that OuterId() gave; unset: it is another cell's.
  std::optional<std::string> InnerId(std::string_view id) const;

  // The one object of a file, for all callers.
  std::shared_ptr<store::File> Guard(std::shared_ptr<store::File> file);
  // The guarded object of `file` is gone.
  void Forget(const store::File* file);

 private:
  // From now on the archive puts and deletes only if a check has just shown that this server owns
  // the cell.
  void GuardArchive();

  const std::string cell_;
  const std::string prefix_;
  const uint64_t epoch_;
  // Before opened_, so that it goes after it.
  const std::shared_ptr<void> mounted_ = std::make_shared<char>();
  OpenedStore opened_;
  Ownership& ownership_;
  AckQueue& acks_;
  std::atomic<bool> is_retired_ = false;
  mutable absl::Mutex mutex_;
  size_t in_hand_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<const store::File*, std::weak_ptr<GuardedFile>> files_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_OPEN_CELL_H_
