// Log lines for callers that are refused before they are authenticated. Any program that reaches
// the port can cause them. So each peer gets one line a second, and the rest is counted.
#ifndef H5MIRROR_SERVER_DOOR_REFUSAL_LOG_H_
#define H5MIRROR_SERVER_DOOR_REFUSAL_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::server {

// Thread-safe.
class RefusalLog {
 public:
  // Knows at most `peers_max` peers of the last second. Further peers share one line.
  explicit RefusalLog(size_t peers_max = 1024) : peers_max_(peers_max) {}

  // The one log of this process.
  static RefusalLog& Instance();

  // For a refusal of `peer`, in gRPC's form ("ipv4:10.0.0.7:51234"), at `now` by
  // Clock::Monotonic(). Returns how many of the peer's refusals had no line since its last one;
  // nullopt: this one gets none. A peer is an IPv4 address, 64 bits of an IPv6 address, or all Unix
  // sockets.
  std::optional<uint64_t> Admit(std::string_view peer, absl::Duration now);

  // Logs "WHAT from PEER: STATUS", or counts it.
  void Warn(std::string_view what, const std::string& peer, const absl::Status& status,
            absl::Duration now);

 private:
  struct Entry {
    absl::Duration last_line;
    uint64_t left_out = 0;
  };

  const size_t peers_max_;
  absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> peers_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> last_sweep_ ABSL_GUARDED_BY(mutex_);
  // Refusals of peers that were forgotten; counted in the next line of any peer.
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_REFUSAL_LOG_H_
