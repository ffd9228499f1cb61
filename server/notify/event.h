// Something that an operator wants to be told of ([[notify]]).
#ifndef H5MIRROR_SERVER_NOTIFY_EVENT_H_
#define H5MIRROR_SERVER_NOTIFY_EVENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "server/settings/event_kind.h"

namespace h5mirror::server {

struct Event {
  EventKind kind = EventKind::kTest;
  std::string file = {};  // its name under the root; empty: the event is of no one file
  // A constant of the program. Events of one kind and file with different causes are not folded, so
  // that one hides no other.
  std::string_view cause = {};
  std::string text = {};                        // for people, one sentence
  std::map<std::string, int64_t> numbers = {};  // "free_bytes": units at the end
  // Set by the sink.
  std::string id = {};  // 32 hex digits; the same in each try to deliver it
  absl::Time time = absl::UnixEpoch();
  // How many further events of the same kind, file and cause this one stands for, and the time of
  // the last of them.
  int64_t repeated = 0;
  absl::Time last_time = absl::UnixEpoch();
};

// Takes events from all over the server.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Thread-safe. Never waits for a receiver, and may be called with locks held: it takes only locks
  // of its own, and calls nothing back.
  virtual void Notify(Event event) = 0;
};

// Does nothing without a sink.
inline void Notify(EventSink* sink, Event event) {
  if (sink != nullptr) sink->Notify(std::move(event));
}

// One JSON object, on one line that is safe for a terminal; `host` is the server's. Names that are
// no UTF-8 get U+FFFD.
std::string ToJson(const Event& event, std::string_view host);

// "h5mirror on storage1: writer_lost: runs/a.h5", for people, on one line that is safe to print.
std::string Headline(const Event& event, std::string_view host);

// This machine's name.
std::string HostName();

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_EVENT_H_
