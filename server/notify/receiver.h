// One receiver of events, with a thread of its own, so that a slow one holds up no other.
#ifndef H5MIRROR_SERVER_NOTIFY_RECEIVER_H_
#define H5MIRROR_SERVER_NOTIFY_RECEIVER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/notify/deliverer.h"
#include "server/notify/event_queue.h"
#include "server/settings/notify_rules.h"

namespace h5mirror::server {

// Delivered, failed and dropped events, by ReceiverKind. Counts only grow.
struct NotifyCounts {
  struct Results {
    uint64_t delivered = 0;
    uint64_t retried = 0;  // tries that failed and were followed by another
    uint64_t failed = 0;   // events that were given up
    uint64_t dropped = 0;  // events that the queue had no room for
  };
  std::array<Results, kReceiverKinds> results;
  uint64_t pending = 0;  // events that wait
};

// NotifyCounts of several threads. Thread-safe.
class NotifyCounter {
 public:
  void Add(ReceiverKind kind, uint64_t NotifyCounts::Results::*result, uint64_t count = 1) {
    const absl::MutexLock lock(&mutex_);
    counts_.results[static_cast<size_t>(kind)].*result += count;
  }
  NotifyCounts Get() const {
    const absl::MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  mutable absl::Mutex mutex_;
  NotifyCounts counts_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class Receiver {
 public:
  // Starts the thread. The references must outlive this. Throws std::system_error where the system
  // gives no more threads.
  Receiver(NotifyRule rule, std::shared_ptr<const Deliverer> deliverer, Clock& clock,
           NotifyCounter& counter, QueueLimits limits = {});
  // Ends a delivery in hand, within seconds.
  ~Receiver();
  Receiver(const Receiver&) = delete;

  // Takes the event, if the rule says so. Never waits for a delivery.
  void Add(const Event& event);
  // Puts the receiver under another rule from now on. Pending events stay.
  void Change(NotifyRule rule, std::shared_ptr<const Deliverer> deliverer);
  bool Is(const NotifyRule& rule) const;
  uint64_t pending() const;

  // Takes no more events. Those that were never tried are tried once, up to the first that fails.
  void BeginStop();
  bool has_stopped() const { return has_stopped_; }
  // Ends the delivery in hand.
  void Cancel() { cancel_ = true; }

 private:
  void Run();
  bool stopping() const;
  // Tries one event, if one is due. False: none is.
  bool DeliverOne();
  void NoteResult(const Event& event, const absl::Status& status);

  Clock& clock_;
  NotifyCounter& counter_;
  std::atomic<bool> cancel_ = false;
  std::atomic<bool> has_stopped_ = false;
  mutable absl::Mutex mutex_;
  NotifyRule rule_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Deliverer> deliverer_ ABSL_GUARDED_BY(mutex_);
  EventQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Since the last delivery a try has failed, an event was dropped; the log says so once.
  bool is_failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_dropping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_RECEIVER_H_
