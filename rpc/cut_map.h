// The reader's side of the metadata that h5mirror-agent shares with the readers of its host.
#ifndef H5MIRROR_RPC_CUT_MAP_H_
#define H5MIRROR_RPC_CUT_MAP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/owned_fd.h"
#include "rpc/cut_map_format.h"

namespace h5mirror::rpc {

// Pages of one cut, mapped read-only. Their memory is sealed: no process, the agent included, can
// change or shorten it. So a check is valid for good, a read never faults, and the memory outlives
// the agent. Thread-safe; works in a forked child too.
class CutMap {
 public:
  // Asks the agent that listens at `socket_path`. Never causes a signal (SIGPIPE).
  // Errors: kNotFound          the agent has no map of the cut.
  //         kUnavailable       no agent is there, or it hangs up.
  //         kDeadlineExceeded  the agent does not answer by the deadline.
  //         kInvalidArgument   the answer is no map of a cut of `size_bytes`, or is not sealed.
  static absl::StatusOr<std::unique_ptr<CutMap>> Ask(const std::string& socket_path,
                                                     const CutMapQuestion& question,
                                                     uint64_t size_bytes, absl::Time deadline);
  // `memories`: the index, and then its parts. `connection` stays open: it tells the agent that
  // they are mapped.
  static absl::StatusOr<std::unique_ptr<CutMap>> Map(const std::vector<OwnedFd>& memories,
                                                     uint64_t size_bytes, OwnedFd connection);
  ~CutMap();
  CutMap(const CutMap&) = delete;

  // Fills the beginning of `out` with the bytes from `offset` on. Returns how many; fewer than all:
  // the next one is not mapped, or is beyond the end of the cut.
  uint64_t Read(uint64_t offset, absl::Span<char> out) const;
  // True: it has all metadata that the agent knew of.
  bool has_all() const { return has_all_; }

 private:
  struct Memory {
    const char* data = nullptr;
    uint64_t length = 0;
  };

  CutMap(uint64_t size_bytes, OwnedFd connection)
      : size_bytes_(size_bytes), connection_(std::move(connection)) {}
  absl::Status MapAll(const std::vector<OwnedFd>& memories);
  absl::Status CheckIndex();
  const CutMapEntry* EntryOf(uint64_t block) const;
  uint64_t PageBytes(uint64_t block, uint32_t page) const;

  const uint64_t size_bytes_;
  const OwnedFd connection_;
  std::vector<Memory> memories_;
  absl::Span<const CutMapEntry> entries_;
  bool has_all_ = false;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CUT_MAP_H_
