// Is a file that a program writes the same as its mirror?
#ifndef H5MIRROR_SYNC_LIVE_COMPARE_H_
#define H5MIRROR_SYNC_LIVE_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/block_digest.h"
#include "base/extent.h"
#include "base/extent_set.h"
#include "rpc/client.h"
#include "sync/local_blocks.h"

namespace h5mirror::tools {

// Compares the file before and after a cut with that cut's version, block by block:
//
//   equal     the block equals the version at either time
//   differs   the block did not change between the two times, and the version has other bytes. It
//             must be so around two cuts: a block may have changed and changed back
//   busy      the block changes all the time, and cannot be compared
//
// A size that the file had at neither time nor between differs by the same rule. The first round is
// of 1 MiB blocks, the others of 4 KiB blocks. Not thread-safe; everything referenced must outlive
// it.
class LiveComparison {
 public:
  // A version, and whether the writer made its cut after it was asked for.
  struct Cut {
    v1::Version version;
    bool fresh = false;
  };
  // Waits for a cut that the writer makes after `since`. If there is none it gives the newest
  // version: blocks that are equal to it are equal, of all others nothing is known.
  using AwaitCut = absl::FunctionRef<absl::StatusOr<Cut>(absl::Time since)>;
  // The file as it is now.
  using OpenBlocks = absl::FunctionRef<absl::StatusOr<LocalBlocks>()>;

  LiveComparison(rpc::Client& client, std::string name, OpenBlocks open_blocks, AwaitCut await_cut)
      : client_(client), name_(std::move(name)), open_blocks_(open_blocks), await_cut_(await_cut) {}

  absl::Status Run();

  // Of the last round.
  const v1::Version& version() const { return version_; }
  // Whole 4 KiB blocks, except for bytes that one side has beyond the other's end.
  const ExtentSet& differing() const { return differing_; }
  // Of blocks that were written all the time, or too many to look at.
  uint64_t busy_bytes() const { return busy_.byte_count(); }
  int rounds() const { return rounds_; }
  uint64_t digest_bytes() const { return digest_bytes_; }

 private:
  // A block of the local file as it was at some time.
  struct Seen {
    uint64_t offset = 0;
    uint64_t length = 0;
    BlockDigest digest{};
    bool suspected = false;  // it has differed for sure once
  };

  absl::Status CompareLarge();
  absl::Status CompareSmall();
  // With `version_`.
  absl::Status ComparePending();
  absl::StatusOr<std::vector<Seen>> LookAtAll();
  absl::Status LookAtPending();
  // Splits a large block that is not equal.
  void AddPending(Extent block);
  // Of the file before and after the cut of `version_`.
  void CompareSizes(uint64_t before_bytes, uint64_t now_bytes);

  rpc::Client& client_;
  const std::string name_;
  OpenBlocks open_blocks_;
  AwaitCut await_cut_;
  v1::Version version_;
  std::vector<Seen> pending_;  // small blocks, rising
  ExtentSet differing_;
  ExtentSet busy_;
  uint64_t size_before_bytes_ = 0;  // when the round in hand began
  bool size_suspected_ = false;     // it has differed for sure once
  bool size_differs_ = false;
  uint64_t digest_bytes_ = 0;
  int rounds_ = 0;
  bool fresh_ = true;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_LIVE_COMPARE_H_
