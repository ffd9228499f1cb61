// Assembles the messages of a subscription into cuts.
#ifndef H5MIRROR_SWMR_AGENT_INCOMING_CUT_H_
#define H5MIRROR_SWMR_AGENT_INCOMING_CUT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/extent.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "swmr_agent/block_pool.h"
#include "swmr_agent/cut_image.h"

namespace h5mirror::agent {

// Thread-compatible.
class IncomingCut {
 public:
  // How the bytes of a cut are read from the server.
  using Ranges = std::function<rpc::RangeReader(const v1::Snapshot& cut)>;

  struct Complete {
    v1::Snapshot snapshot;  // with the file's id
    bool has_writer = false;
    bool whole = false;
    std::vector<Extent> changed;
    std::shared_ptr<CutImage> image;
  };

  IncomingCut(std::shared_ptr<BlockPool> pool, Ranges ranges)
      : pool_(std::move(pool)), ranges_(std::move(ranges)) {}

  // A cut when `message` is its last one. After an error the stream cannot be read on, and the next
  // one resumes from after_cut().
  // Errors: kDataLoss bytes were damaged on the way; kInternal the messages make no sense.
  absl::StatusOr<std::optional<Complete>> Take(const v1::FollowFileResponse& message);
  // A stream has ended: the parts of an incomplete cut are void.
  void Abandon() { pending_.reset(); }

  // The held cut, for the next request. 0 and "": none.
  int64_t after_cut() const { return after_cut_; }
  const std::string& file_id() const { return file_id_; }

 private:
  absl::Status Begin(const v1::FollowFileResponse& message);
  absl::Status Learn(const v1::FollowFileResponse& message);

  const std::shared_ptr<BlockPool> pool_;
  const Ranges ranges_;
  std::optional<Complete> pending_;
  // The last complete one.
  int64_t after_cut_ = 0;
  std::string file_id_;
  std::shared_ptr<CutImage> image_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_INCOMING_CUT_H_
