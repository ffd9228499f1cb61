// Notices and figures of a store for its operator.
#ifndef H5MIRROR_ONION_STORE_STORE_HEALTH_H_
#define H5MIRROR_ONION_STORE_STORE_HEALTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::store {

class Store;

// A line for the log about something that no call has asked for.
struct StoreNotice {
  enum class Kind : uint8_t {
    kPagesLost,     // damage was found, and versions lost pages
    kWentBack,      // durable cuts too large for any head here were dropped
    kCannotApply,   // a head stays at its cut; told once for each reason
    kNoAccessList,  // only the store's user may use heads; told once
    kUnreadable,    // `file` is a directory of which no file can be listed; told once
    kClock,         // the machine's clock was set, or is not believed; names no file
  };
  Kind kind = Kind::kPagesLost;
  std::string file;
  std::string text;  // one line, without the file's name
};

// Notices until they are taken; beyond a thousand the newest are dropped. Thread-safe.
class StoreNotices {
 public:
  void Add(StoreNotice notice);
  std::vector<StoreNotice> Take();

 private:
  absl::Mutex mutex_;
  std::vector<StoreNotice> notices_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class StoreHealth {
 public:
  virtual ~StoreHealth() = default;
  // Null: this store has no notices and figures.
  static StoreHealth* Of(Store& store);

  // The notices since the last call.
  virtual std::vector<StoreNotice> TakeNotices() = 0;
  // How many pages of versions were found damaged, and noted as lost, since the store was opened.
  virtual uint64_t lost_pages() const = 0;

  // The time of day that versions are stamped with: the machine's, if that can be true.
  virtual absl::Time Now() = 0;
  // For people: why no version or removed file may be dropped for its age now; empty: it may.
  virtual std::string DoubtOfTime() = 0;
  // By how much the machine's clock is ahead of Now().
  virtual absl::Duration ClockAhead() = 0;
  // Does upkeep. Call it about once a second.
  virtual void Tend() = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_HEALTH_H_
