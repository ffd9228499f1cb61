// Judges other servers by their beats (docs/design/049-cells.md, step 3).
#ifndef H5MIRROR_CLUSTER_WATCHER_H_
#define H5MIRROR_CLUSTER_WATCHER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/records.h"
#include "cluster/timing.h"

namespace h5mirror::cluster {

// A count of this server's own beats. Before it has joined: of its looks at the registry.
struct OwnBeats {
  uint64_t succeeded = 0;
  uint64_t failed = 0;
};

// A beat of another server.
struct SeenBeat {
  uint64_t epoch = 0;  // of the server
  BeatRecord beat;
  absl::Duration at;  // seen first, by the clock's Monotonic()
};

// Others' clocks are never read: a beat is a number that changes or does not, and time is this
// server's monotonic clock. A beat of this server that fails starts each count again, so that an
// outage of the registry makes nobody look silent.
//
// Not thread-safe.
class Watcher {
 public:
  // `clock` must outlive this.
  Watcher(Clock& clock, const Timing& timing) : clock_(clock), timing_(timing) {}

  // Call after each look at the registry. Returns the IDs of servers that are alive by their
  // records, but silent. `self` is not judged; empty: none is left out.
  std::vector<std::string> Observe(const ClusterView& view, const std::string& self,
                                   const OwnBeats& own);
  // The beats of the other servers, as the last look showed them. By ID.
  std::map<std::string, SeenBeat> SeenBeats() const;
  // Begins all counts again.
  void Forget() { seen_.clear(); }

 private:
  // A beat, and when it was seen first.
  struct Seen {
    uint64_t epoch = 0;
    BeatRecord beat;
    absl::Duration at;
    OwnBeats own;
  };
  // True: `seen` has not changed for long enough. If it has changed, its count begins anew.
  bool IsSilent(const Seen& now, Seen& seen) const;

  Clock& clock_;
  const Timing timing_;
  std::map<std::string, Seen> seen_;  // by ID
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_WATCHER_H_
