// Where a local file and a version of its mirror differ, found by digests of two sizes of blocks:
// only digests cross the network.
#ifndef H5MIRROR_SYNC_COMPARE_H_
#define H5MIRROR_SYNC_COMPARE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/extent_set.h"
#include "cli/output/progress.h"
#include "rpc/client.h"
#include "sync/digest_stream.h"
#include "sync/local_blocks.h"

namespace h5mirror::tools {

// One comparison, of contents that go on with zeros beyond their ends: a side that is shorter
// differs there where the other has data. Memory is bounded, whatever the sizes. Not thread-safe;
// everything referenced must outlive it.
class Comparison {
 public:
  // Blocks of 4 KiB that differ, adjacent ones merged, rising; they may go beyond the end of either
  // side. Called often, also with nothing, while no call to the server is under way.
  using Sink = absl::FunctionRef<absl::Status(absl::Span<const Extent> differing)>;

  // `version` 0: the newest.
  Comparison(rpc::Client& client, std::string name, int64_t version, LocalBlocks& local,
             Progress& progress);

  // Compares blocks of 1 MiB, once. Errors: those of DigestFile; kDataLoss.
  absl::Status Coarse();
  // Then: looks closer at those that differ.
  absl::Status Fine(Sink sink);

  // The offset of the first difference, for messages. Runs Fine(); call it only if not equal(). If
  // the longer side only goes on with zeros, it is the end of the shorter side.
  absl::StatusOr<uint64_t> FindFirst();

  // After Coarse(): byte for byte the same.
  bool equal() const { return suspects_.empty() && local_.size_bytes() == remote_size_bytes(); }
  const v1::Version& version() const { return version_; }
  uint64_t remote_size_bytes() const { return static_cast<uint64_t>(version_.size_bytes()); }
  // After Fine(): in blocks of 4 KiB, at least 1 where the sizes alone differ.
  uint64_t differing_bytes() const;
  // The bytes of the digests on the wire.
  uint64_t digest_bytes() const { return digest_bytes_; }

 private:
  uint64_t size_max() const { return std::max(local_.size_bytes(), remote_size_bytes()); }
  absl::Status CompareBatch(absl::Span<const Extent> ranges, std::vector<Extent>& differing);
  absl::Status ScanTail(Sink sink);
  void Differs(uint64_t offset, std::vector<Extent>& differing);

  rpc::Client& client_;
  const std::string name_;
  const int64_t number_;
  LocalBlocks& local_;
  Progress& progress_;
  v1::Version version_;
  // The large blocks of the version that may differ. If there are very many, it covers more of the
  // file.
  ExtentSet suspects_;
  uint64_t differing_bytes_ = 0;
  std::optional<uint64_t> last_differing_;  // the last block found
  uint64_t digest_bytes_ = 0;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_COMPARE_H_
