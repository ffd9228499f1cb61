// What an operator should know of a store.
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

// For the log; nobody has asked for it.
struct StoreNotice {
  enum class Kind : uint8_t {
    kPagesLost,    // damage was found that costs versions pages
    kWentBack,     // durable cuts that no head here can hold were dropped
    kCannotApply,  // a head stays where it is; told once for each reason
    kClock,        // the machine's clock was set, or is not believed; of no file
  };
  Kind kind = Kind::kPagesLost;
  std::string file;
  std::string text;  // one line, without the file's name
};

// Notices that nobody has taken yet; beyond a thousand the newest are left out. Thread-safe.
class StoreNotices {
 public:
  void Add(StoreNotice notice);
  std::vector<StoreNotice> Take();

 private:
  absl::Mutex mutex_;
  std::vector<StoreNotice> notices_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe, as the store is whose it is.
class StoreHealth {
 public:
  virtual ~StoreHealth() = default;
  // Null: it does not tell.
  static StoreHealth* Of(Store& store);

  // What has happened since the last call.
  virtual std::vector<StoreNotice> TakeNotices() = 0;
  // Pages of versions that were found damaged, and noted as lost, since the store was opened.
  virtual uint64_t lost_pages() const = 0;

  // The time of day as versions are stamped with it: the machine's, where that can be true.
  virtual absl::Time Now() = 0;
  // For people: why nothing may be thrown away for its age now; empty: it may.
  virtual std::string DoubtOfTime() = 0;
  // By how much the machine's clock is ahead of Now().
  virtual absl::Duration ClockAhead() = 0;
  // What is to be done now and then, about once a second.
  virtual void Tend() = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_HEALTH_H_
