// The stores of all cells that this server owns, as the one store of its root.
#ifndef H5MIRROR_SERVER_CLUSTER_CLUSTER_STORE_H_
#define H5MIRROR_SERVER_CLUSTER_CLUSTER_STORE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "onion_store/store.h"
#include "onion_store/store_health.h"
#include "server/cluster/ack_queue.h"
#include "server/cluster/open_cell.h"
#include "server/cluster/operations.h"
#include "server/cluster/ownership.h"

namespace h5mirror::server {

// A call that names a file goes to the store of the cell that the file lies in. Where another
// server serves that, the call ends with rpc::ElsewhereError(); where nobody does at the moment,
// with kUnavailable; in no cell, with kInvalidArgument. A call of the whole root, as List(""), sees
// the cells that are served here, and ends with kUnavailable while this server may not answer for
// one of them. Files pass the guard (server/cluster/guarded_file.h). Moves and
// forks stay within a cell: else kInvalidArgument.
//
// Thread-safe.
class ClusterStore final : public store::Store, public store::StoreHealth {
 public:
  // `ownership` must outlive this.
  explicit ClusterStore(Ownership& ownership);
  ~ClusterStore() override;

  // ---- For the host of cells ----

  // Begins to serve a cell, as soon as `ownership` passes its answers.
  void Add(const std::string& cell, uint64_t epoch, OpenedStore opened)
      ABSL_LOCKS_EXCLUDED(mutex_, listener_mutex_, cells_mutex_);
  // Takes no new calls of the cell, ends its sessions by the listener below, and waits until the
  // calls in hand have ended. OK also where it is not open. kUnavailable: not within `timeout`; the
  // cell is served on.
  absl::Status RetireCell(const std::string& cell, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_, retire_mutex_);
  // Told of a cell that retires, again and again: ends the sessions and the waiting calls of files
  // whose names begin with `prefix`, without waiting. Returns how many sessions go on. Null: there
  // are none.
  using RetireListener = std::function<size_t(const std::string& prefix)>;
  void SetRetireListener(RetireListener listener) ABSL_LOCKS_EXCLUDED(retire_mutex_);
  // Told when this server gets a cell, twice: before it answers for the cell, and once it does (a
  // list leaves the cell out until then). Also told when this server has lost a cell. Must not
  // wait. Null: no listener.
  using CellsListener = std::function<void(const std::string& cell)>;
  void SetCellsListener(CellsListener listener) ABSL_LOCKS_EXCLUDED(cells_mutex_);
  // Tells the listener of the cell. To be called when `ownership` passes its answers.
  void TellCell(const std::string& cell) ABSL_LOCKS_EXCLUDED(cells_mutex_);
  // The archive of the cell that `name` lies in, which lives as long as the result; null: the cell
  // has none. Errors: as for the class.
  absl::StatusOr<std::shared_ptr<archive::RootArchive>> ArchiveOf(std::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: this is no cluster that could be asked.
  ClusterOperations* operations() { return ownership_.operations(); }
  Ownership& ownership() { return ownership_; }

  // Serves the cell no more, makes its cuts durable, closes it and gives its lock back. For a cell
  // whose calls and sessions have ended. Errors: as Store::Close(). OK: it was not open.
  absl::Status CloseCell(const std::string& cell, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mutex_, cells_mutex_);

  // ---- Store ----

  // Closes all open cells, with `deadline` each; then answers the waiting acks.
  absl::Status Close(absl::Duration deadline) override;
  void SetCutListener(CutListener listener) override;
  absl::StatusOr<std::shared_ptr<store::File>> OpenFile(std::string_view name) override;
  absl::StatusOr<std::shared_ptr<store::File>> OpenOrCreateFile(std::string_view name,
                                                                uint32_t page_size_bytes) override;
  absl::StatusOr<store::VersionInfo> Fork(store::File& source, store::VersionNumber version,
                                          std::string_view new_name,
                                          const store::ForkRequest& request) override;
  absl::StatusOr<std::vector<store::FileSummary>> List(std::string_view directory,
                                                       std::string_view after_name,
                                                       size_t limit) override;
  absl::StatusOr<store::FileInfo> Glance(const store::FileSummary& listed) override;
  absl::Status Move(std::string_view name, std::string_view new_name) override;
  absl::StatusOr<store::RemovedFile> Remove(std::string_view name, const store::Provenance& who,
                                            absl::Duration keep) override;
  absl::StatusOr<std::vector<store::RemovedFile>> ListRemoved() override;
  absl::StatusOr<std::string> Undelete(std::string_view removal_id,
                                       std::string_view new_name) override;
  absl::StatusOr<int> PurgeRemoved(absl::Time now) override;
  absl::Status PurgeOneRemoved(std::string_view removal_id) override;
  absl::StatusOr<std::vector<std::string>> CheckedFiles() override;
  absl::StatusOr<store::FileOwner> OwnerOf(std::string_view name) override;
  void SetOwnerListener(OwnerListener listener) override;
  absl::StatusOr<store::HistorySizes> Measure(std::string_view name,
                                              store::WithHead with_head) override;
  absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() override;
  void StopHistory(std::string_view name) override;
  void ResumeHistory(std::string_view name) override;
  // The incarnation of this process. If a cell comes back to this process, it was closed in order
  // before, so all of its cuts are durable.
  const std::array<uint8_t, 16>& incarnation() const override { return incarnation_; }
  uint64_t memory_used_bytes() const override;
  // kUnavailable: no cell is open.
  absl::StatusOr<uint64_t> FreeDiskBytes() const override;
  uint64_t disk_bytes() const override;

  // ---- StoreHealth ----

  std::vector<store::StoreNotice> TakeNotices() override;
  uint64_t lost_pages() const override;
  // The latest of all cells: no version is stamped with a time before that of an older one.
  absl::Time Now() override;
  std::string DoubtOfTime() override;
  absl::Duration ClockAhead() override;
  void Tend() override;

 private:
  using Cell = std::shared_ptr<OpenCell>;

  // The cell of `name`, if this server serves it. Errors: as for the class.
  absl::StatusOr<Cell> CellFor(std::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Cell> CellAt(const std::string& cell, std::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // kUnavailable: before the first look at the registry. An empty list would look whole.
  absl::Status CheckLooked();
  // Calls `on_unmounted` of the closed cells that nobody holds a file of any more.
  void TellUnmounted() ABSL_LOCKS_EXCLUDED(mutex_);
  // The cell of both names. kInvalidArgument: they lie in two.
  absl::StatusOr<Cell> CellForBoth(std::string_view name, std::string_view other);
  // All that are open, in the order of their files' names.
  std::vector<Cell> AllCells() const ABSL_LOCKS_EXCLUDED(mutex_);
  Cell FindOpen(const std::string& cell) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The open cells that pass the guard, for work that may leave out some. They count as in hand.
  std::vector<Cell> Cells() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The open cells that no other server owns by now. An answer about them still needs the guard.
  // They count as in hand, except those that retire.
  std::vector<Cell> OwnCells() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The names that each cell's `list` gives.
  absl::StatusOr<std::vector<std::string>> Names(
      absl::StatusOr<std::vector<std::string>> (store::Store::*list)());

  Ownership& ownership_;
  const std::array<uint8_t, 16> incarnation_;
  AckQueue acks_;
  SystemClock clock_;

  mutable absl::Mutex mutex_;
  std::map<std::string, Cell> cells_ ABSL_GUARDED_BY(mutex_);  // by prefix
  std::set<std::string> stopped_ ABSL_GUARDED_BY(mutex_);      // StopHistory()
  struct Unmounting {
    std::weak_ptr<void> mounted;  // OpenCell::mounted()
    std::function<void()> on_unmounted;
  };
  std::vector<Unmounting> unmounting_ ABSL_GUARDED_BY(mutex_);

  // Held by readers over a call of a listener.
  absl::Mutex listener_mutex_;
  CutListener cut_listener_ ABSL_GUARDED_BY(listener_mutex_);
  OwnerListener owner_listener_ ABSL_GUARDED_BY(listener_mutex_);

  // Held over a call of the listener, which may make cuts.
  absl::Mutex retire_mutex_;
  RetireListener retire_listener_ ABSL_GUARDED_BY(retire_mutex_);

  // A mutex of its own, so that a retiring cell delays no other one. Held during a call of the
  // listener.
  absl::Mutex cells_mutex_;
  CellsListener cells_listener_ ABSL_GUARDED_BY(cells_mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_CLUSTER_STORE_H_
