// The owners of all directories, as far as this server knows (docs/design/049-cells.md,
// "Redirects").
#ifndef H5MIRROR_CLUSTER_CELLS_H_
#define H5MIRROR_CLUSTER_CELLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/records.h"

namespace h5mirror::cluster {

enum class RouteKind : uint8_t {
  kServe,      // this server owns the cell at `epoch`; the guard has the last word
  kRedirect,   // `owner` owns it at `epoch`: ask it at `listen`, and tell it the epoch
  kWait,       // nobody answers for it now, or the owner that the caller knows does: ask later
  kReadAgain,  // the caller has heard more than this server: read the registry
  kNoCell,     // as far as is known
};

struct Route {
  RouteKind kind = RouteKind::kNoCell;
  uint64_t epoch = 0;  // 0: of no use
  std::string owner;
  std::string listen;
  std::string http = {};  // ServerRecord::http of the owner
};

// Thread-safe. Knowledge only grows: an older look at the registry changes nothing.
class Cells {
 public:
  explicit Cells(std::string self_id) : self_id_(std::move(self_id)) {}

  // This server has joined.
  void SetOwnEpoch(uint64_t epoch);
  void Update(const ClusterView& view);
  // A change of this server's own that the registry has taken.
  void Put(const std::string& cell, const CellRecord& record);

  // The cell that a file or directory lies in: the longest one. Unset: in none.
  std::optional<std::string> CellOf(std::string_view path) const;

  // The route of a call for `cell`. `seen_epoch`: the highest epoch of the cell that the caller has
  // heard of; 0: none. A redirect's epoch is higher, so redirects end.
  Route Resolve(std::string_view cell, uint64_t seen_epoch) const;

  // The cells in `directory`, or the one that it lies in, and where calls for them go. By
  // directory.
  std::map<std::string, Route> RoutesBelow(std::string_view directory) const;

  // True: a look at the registry has been told. Before that, no cell is known.
  bool has_looked() const {
    absl::MutexLock lock(&mutex_);
    return has_looked_;
  }

 private:
  Route RouteOf(const CellRecord& record, uint64_t seen_epoch) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string self_id_;
  mutable absl::Mutex mutex_;
  uint64_t own_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_looked_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, ServerRecord> servers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, CellRecord, std::less<>> cells_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_CELLS_H_
