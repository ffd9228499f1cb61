// Cuts the bytes of a range into blocks as they come from a server.
#ifndef H5MIRROR_SWMR_AGENT_BLOCK_SPLITTER_H_
#define H5MIRROR_SWMR_AGENT_BLOCK_SPLITTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace h5mirror::agent {

// Hands out each block of 64 KiB as soon as all of its bytes are there. Bytes that lie in one piece
// are not copied. Thread-compatible.
class BlockSplitter {
 public:
  // Gets the blocks in order. `bytes` are valid during the call only.
  using Keep = absl::FunctionRef<absl::Status(uint64_t index, std::string_view bytes)>;
  // The range [begin, end), where `begin` is that of a block. `keep` must outlive this.
  BlockSplitter(uint64_t begin, uint64_t end, Keep keep)
      : begin_(begin), end_(end), at_(begin), keep_(keep) {}

  // Bytes that are left out are zeros. Those that have come already are passed by: a call that
  // broke off is repeated from its beginning.
  // Errors: kInternal they are not of the range; `keep`'s.
  absl::Status Take(uint64_t offset, std::string_view data);
  // All has come: the rest of the range are zeros. Errors: `keep`'s.
  absl::Status Finish() { return FeedZeros(end_ - at_); }

 private:
  // Of the block that the next byte is in.
  uint64_t BlockBegin() const;
  uint64_t BlockEnd() const;
  absl::Status FeedZeros(uint64_t length);
  // Bytes of one block.
  absl::Status Feed(std::string_view bytes);

  const uint64_t begin_;
  const uint64_t end_;
  uint64_t at_;  // of the next byte
  const Keep keep_;
  std::string started_;  // the bytes of its block up to there
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_BLOCK_SPLITTER_H_
