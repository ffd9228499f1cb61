// Finds the block of each digest in the answers of Files.DigestFile.
#ifndef H5MIRROR_RPC_DIGEST_BLOCKS_H_
#define H5MIRROR_RPC_DIGEST_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/block_digest.h"
#include "base/extent.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/types.pb.h"

namespace h5mirror::rpc {

// Takes a block's range, the last one clipped to the version's end, and its digest.
using DigestSink = absl::FunctionRef<absl::Status(Extent block, const BlockDigest& digest)>;

// The digests of one call. Not thread-safe. The referenced objects must outlive it.
class DigestBlocks {
 public:
  // `request`: that of the call; its block size must be set.
  DigestBlocks(const v1::DigestFileRequest& request, DigestSink sink)
      : request_(request), sink_(sink) {}

  // Hands each block of the next message to the sink, in order.
  // Errors: kDataLoss more digests than the version has; the sink's.
  absl::Status Take(const v1::DigestFileResponse& message);
  // After the last message: the version. kDataLoss: digests are missing.
  absl::StatusOr<v1::Version> Finish() const;

 private:
  absl::Status TakeVersion(const v1::Version& version);
  absl::Status BadCount(std::string_view what) const;

  const v1::DigestFileRequest& request_;
  DigestSink sink_;
  v1::Version version_;
  std::vector<Extent> ranges_;  // from range_ on: without a digest yet
  size_t range_ = 0;
  std::string pending_;  // bytes of a digest that is split over two messages
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_DIGEST_BLOCKS_H_
