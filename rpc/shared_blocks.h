// The reader's side of the blocks that h5mirror-agent shares with the readers of its host.
#ifndef H5MIRROR_RPC_SHARED_BLOCKS_H_
#define H5MIRROR_RPC_SHARED_BLOCKS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/owned_fd.h"
#include "rpc/cut_map_format.h"
#include "rpc/shared_blocks_format.h"

namespace h5mirror::rpc {

// Blocks of one cut. Those that are in the memory are copied from it with no call to the agent. For
// the others the agent is asked; it fetches them once for all readers. Blocks that are read in
// order are asked for before they are read.
//
// The memory's size is sealed, and the bytes are read with pread(): no access raises a signal. A
// block that the agent replaces meanwhile is noticed, and never taken.
//
// Thread-compatible. In a forked child only blocks that are in the memory are found: the connection
// is the parent's.
class SharedBlocks {
 public:
  // Asks the agent that listens at `socket_path`. Never causes a signal (SIGPIPE).
  // Errors: as CutMap::Ask().
  static absl::StatusOr<std::unique_ptr<SharedBlocks>> Ask(const std::string& socket_path,
                                                           const CutMapQuestion& question,
                                                           uint64_t size_bytes,
                                                           absl::Time deadline);
  // `cut`: as the agent counts. kInvalidArgument: the memories are not sealed, or do not fit.
  // `flags`: of the agent's answer.
  static absl::StatusOr<std::unique_ptr<SharedBlocks>> Map(OwnedFd table, OwnedFd bytes,
                                                           uint64_t cut, uint64_t size_bytes,
                                                           OwnedFd connection, uint32_t flags = 0);
  ~SharedBlocks();
  SharedBlocks(const SharedBlocks&) = delete;

  // Fills the beginning of `out` with the bytes from `offset` on, which must be within the cut.
  // Returns how many; fewer than all: the next one is not to be had here now.
  uint64_t Read(uint64_t offset, absl::Span<char> out);
  // The same, for bytes beside those that are read in order: nothing is asked for ahead.
  uint64_t ReadBeside(uint64_t offset, absl::Span<char> out);
  // The same, with no question to the agent.
  uint64_t Peek(uint64_t offset, absl::Span<char> out) const;
  // The agent has said that nobody else reads the file, and that it has no room for it: bytes that
  // are not in the memory are read best at the server. So for ten seconds, until then; then the
  // agent is asked again. In the past: it has not.
  absl::Time alone_until() const { return alone_until_; }
  bool IsAlone() const;

 private:
  SharedBlocks(OwnedFd bytes, uint64_t cut, uint64_t size_bytes, OwnedFd connection,
               uint32_t flags);
  absl::Status MapTable(const OwnedFd& table);
  uint64_t block_count() const;
  // Copies from the one block that `offset` is in; 0: it is not in the memory.
  uint64_t Copy(uint64_t offset, absl::Span<char> out) const;
  bool CopyFromSlot(uint64_t slot, uint64_t offset, absl::Span<char> out) const;
  // Waits until the agent has the blocks [first, end), or 64 of them. False: it has not.
  bool Want(uint64_t first, uint64_t end);
  void AskAhead(uint64_t offset, uint64_t length);
  bool Send(SharedWant want);
  // Reads the answer of a question. False: there was none in time.
  bool Receive(SharedFilled* filled);

  const OwnedFd bytes_;
  const uint64_t cut_;
  const uint64_t size_bytes_;
  const pid_t owner_;   // of the connection
  OwnedFd connection_;  // closed: nothing can be asked for
  const SharedWant::Kind wait_kind_;
  const char* table_ = nullptr;
  uint64_t table_bytes_ = 0;
  const SharedBlockEntry* entries_ = nullptr;
  uint64_t set_count_ = 0;
  uint64_t run_end_ = UINT64_MAX;  // where a read would go on in order
  uint64_t ahead_blocks_ = 0;      // of the next message that asks ahead, about
  uint64_t ahead_end_ = 0;         // block up to which it has been asked ahead
  absl::Time last_sent_;
  absl::Time alone_until_ = absl::InfinitePast();
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SHARED_BLOCKS_H_
