// Keeps a dead server's writes off the disk (docs/design/049-cells.md, step 4).
#ifndef H5MIRROR_CLUSTER_FENCER_H_
#define H5MIRROR_CLUSTER_FENCER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/records.h"

namespace h5mirror::cluster {

// One life of a server, as recorded: the target of a fencing.
struct FenceTarget {
  std::string id;
  uint64_t epoch = 0;
  std::string session;
  std::vector<std::string> addresses;
  std::vector<std::string> mounts = {};  // more sessions, as ServerRecord::mounts
};

inline FenceTarget TargetOf(const std::string& id, const ServerRecord& record) {
  return {id, record.epoch, record.session, record.addresses, record.mounts};
}

// Thread-safe. The form for Ceph is behind cluster/rados_api.h.
class Fencer {
 public:
  virtual ~Fencer() = default;

  // After OK: as soon as a client with the OSDs' newest map has touched an object, no write of the
  // target lands on that object. This holds for a year, whatever the target does. Unsynced data of
  // the target is lost. May be repeated, also by several servers at once, and after one that ended
  // half-way. May block for as long as Ceph is away.
  //
  // Errors: kInvalidArgument  the target has no addresses: nothing can be promised.
  //         kUnavailable      unknown; to be repeated.
  //         kInternal         this process is fenced itself.
  virtual absl::Status Fence(const FenceTarget& target) = 0;
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_FENCER_H_
