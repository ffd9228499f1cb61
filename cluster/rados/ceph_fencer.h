// Fencing by Ceph: the end of a session in CephFS, and the blocklist.
#ifndef H5MIRROR_CLUSTER_RADOS_CEPH_FENCER_H_
#define H5MIRROR_CLUSTER_RADOS_CEPH_FENCER_H_

#include <string>

#include "cluster/fencer.h"
#include "cluster/rados/connection.h"

namespace h5mirror::cluster {

// In this order: the MDS ends the session, which gives its locks back and makes clients of its
// files wait for the map with its address; each recorded address goes on the blocklist for a year,
// where the MDS left one only for an hour or the session had ended by itself; the new map is
// awaited.
//
// Thread-safe. Each call leaves a session of its own at the MDS, without caps, which ends by itself
// after 5 minutes.
class CephFencer final : public Fencer {
 public:
  // `connection` must outlive this.
  explicit CephFencer(const Connection& connection) : connection_(connection) {}

  absl::Status Fence(const FenceTarget& target) override;

 private:
  absl::Status EndSession(const std::string& id, const std::string& session);
  absl::Status Block(const FenceTarget& target);

  const Connection& connection_;
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RADOS_CEPH_FENCER_H_
