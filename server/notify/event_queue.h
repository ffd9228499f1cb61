// The events of one receiver that are to be delivered: in order, folded, bounded, tried again.
//
//   Add --> ready: delivered one after the other
//    |        ^
//    |        | its window has ended
//    +--> held: an event like one of the last minutes; further ones are folded into it
//
// It knows no thread and no clock: `now` is Clock::Monotonic().
#ifndef H5MIRROR_SERVER_NOTIFY_EVENT_QUEUE_H_
#define H5MIRROR_SERVER_NOTIFY_EVENT_QUEUE_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/time/time.h"
#include "server/notify/event.h"

namespace h5mirror::server {

struct QueueLimits {
  size_t events_max = 1000;  // beyond it old ones are dropped, those of files first
  absl::Duration window = absl::Minutes(10);    // in which the same events are folded
  absl::Duration retry_min = absl::Seconds(1);  // doubled with each try
  absl::Duration retry_max = absl::Minutes(5);
  absl::Duration give_up = absl::Hours(24);  // after the first try
};

class EventQueue {
 public:
  explicit EventQueue(QueueLimits limits = {}) : limits_(limits) {}

  // Returns how many events were dropped to make room.
  size_t Add(Event event, absl::Duration now);

  // The event to be tried now, the oldest. It stays until Delivered() or Failed(), one of which
  // must follow. nullopt: none is due.
  std::optional<Event> Take(absl::Duration now);
  // The taken event has arrived. Returns how many times it was tried.
  int Delivered();
  enum class Retry { kMay, kCannotHelp };
  // The taken event has not arrived. True: it will be tried again; false: it is given up.
  bool Failed(absl::Duration now, Retry retry);

  size_t size() const { return ready_.size() + held_.size(); }
  // Whether an event waits that was never tried, apart from held ones.
  bool has_fresh() const { return !ready_.empty() && ready_.front().tries == 0; }

 private:
  using Key = std::tuple<EventKind, std::string, std::string_view>;
  struct Entry {
    Event event;
    int tries = 0;
    absl::Duration first_try = absl::ZeroDuration();
    absl::Duration next_try = absl::ZeroDuration();
  };
  struct Held {
    Event event;
    absl::Duration due;
  };

  static Key KeyOf(const Event& event) { return {event.kind, event.file, event.cause}; }
  static void Fold(Event& into, Event event);
  Event* FindFresh(const Key& key);
  void Push(Event event, absl::Duration now);
  void ReleaseHeld(absl::Duration now);
  void ForgetWindows(absl::Duration now);
  bool DropOldestIf(bool (*may_go)(const Event& event));
  // Events of files first: users can cause any number of them, while those of the whole server,
  // such as disk_low, are told once.
  size_t DropOne();

  const QueueLimits limits_;
  std::deque<Entry> ready_;
  bool is_taken_ = false;  // the first of `ready_` is being tried
  std::map<Key, Held> held_;
  std::map<Key, absl::Duration> windows_;  // their ends
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_EVENT_QUEUE_H_
