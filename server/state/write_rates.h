// The bytes of each file that writers have sent in the last minutes: for people, who look at a list
// of files. Lives in memory only.
#ifndef H5MIRROR_SERVER_STATE_WRITE_RATES_H_
#define H5MIRROR_SERVER_STATE_WRITE_RATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/hex.h"
#include "h5mirror/v1/files.pb.h"

namespace h5mirror::server {

// Thread-safe. Sessions add to it by their timer, not with each frame.
class WriteRates {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(5);
  static constexpr size_t kIntervals = 60;  // 5 minutes

  // `clock` must outlive this. Beyond `files_max` files, those are forgotten that were written
  // longest ago: 10,000 of them take 6 MB.
  explicit WriteRates(Clock& clock, size_t files_max = 10000)
      : clock_(clock), files_max_(files_max) {}

  // A writer has sent so many bytes more of the file.
  void Add(const Bytes16& file_id, uint64_t bytes);
  // The file was removed.
  void Forget(const Bytes16& file_id);

  // nullopt: no byte has come in the last kIntervals intervals.
  std::optional<v1::RecentWrites> Of(const Bytes16& file_id) const;

  size_t size() const;

 private:
  struct Entry {
    Bytes16 file_id{};
    int64_t newest = 0;                        // the number of the newest interval that has bytes
    std::array<uint64_t, kIntervals> bytes{};  // of interval N at N % kIntervals
  };
  using Entries = std::list<Entry>;

  // The number of the interval that goes on, by the monotonic clock.
  int64_t Now() const;
  void Erase(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Files that have no byte in the last intervals, and one more where there are too many.
  void MakeRoom(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const size_t files_max_;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // the one that was written longest ago first
  absl::flat_hash_map<Bytes16, Entries::iterator> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_WRITE_RATES_H_
