// Hands memory with bytes of cuts to readers that map it:
// docs/design/011-metadata-in-shared-memory.md, 052-blocks-in-shared-memory.md.
#ifndef H5MIRROR_SWMR_AGENT_MAP_SERVER_H_
#define H5MIRROR_SWMR_AGENT_MAP_SERVER_H_

#include <poll.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/cut_map.h"
#include "swmr_agent/block_filler.h"
#include "swmr_agent/cut_memory.h"
#include "swmr_agent/cut_opener.h"

namespace h5mirror::agent {

// A plain socket beside gRPC's, since descriptors go with it. A connection is one map, and stays
// open until its reader has released it. Until then the memory counts as the agent's. Has one
// thread, which never waits for a reader, and those of a BlockFiller and a CutOpener.
class MapServer {
 public:
  using MemoryPtr = std::shared_ptr<const CutMemory>;
  // Must not wait for a server. An error: the reader is told that there is nothing to map, and
  // reads through gRPC.
  using Find =
      std::function<absl::StatusOr<MemoryPtr>(uid_t user, const rpc::CutMapQuestion& question)>;
  // The same, for questions that ask for blocks.
  using FindBlocks =
      std::function<absl::StatusOr<SharedView>(uid_t user, const rpc::CutMapQuestion& question)>;
  // The answers to questions, by their kind.
  struct Answers {
    Find map;
    FindBlocks blocks;
    CutOpener::Open open;
  };

  // A window is kept this long after its last reader for the next one, unless memory is short.
  static constexpr absl::Duration kUnusedMax = absl::Seconds(10);

  // kUnavailable names `path`, and why.
  static absl::StatusOr<std::unique_ptr<MapServer>> Listen(const std::filesystem::path& path,
                                                           mode_t mode_bits, Answers answers,
                                                           absl::Duration unused_max = kUnusedMax);
  // Readers keep their mappings.
  ~MapServer();
  MapServer(const MapServer&) = delete;

 private:
  struct Reader {
    OwnedFd fd;
    uid_t user = 0;     // at the other end
    absl::Time until;   // it has asked by then,
    std::string asked;  // so far this
    bool has_answer = false;
    MemoryPtr memory{};                     // its mapping
    std::shared_ptr<BlockReader> blocks{};  // or one of these; it has the descriptor then
    std::shared_ptr<OpenReader> opened{};

    int descriptor() const {
      if (opened != nullptr) return opened->fd.get();
      return blocks != nullptr ? blocks->fd.get() : fd.get();
    }
  };
  struct Unused {
    WindowPtr window;
    absl::Time until;
  };

  MapServer(std::filesystem::path path, OwnedFd listener, OwnedFd stop, Answers answers,
            absl::Duration unused_max);
  void Run();
  void Accept();
  // False: it has gone, or is to go.
  bool Serve(Reader& reader);
  bool Answer(Reader& reader);
  bool AnswerMap(Reader& reader, const rpc::CutMapQuestion& question);
  bool AnswerBlocks(Reader& reader, const rpc::CutMapQuestion& question);
  // Leaves the answer to a thread that may wait.
  void PassOn(Reader& reader, rpc::CutMapQuestion question);
  // Windows stay for the next reader for a while.
  void LetGo(Reader& reader);

  const std::filesystem::path path_;
  const OwnedFd listener_;
  const OwnedFd stop_;
  const Find find_;
  const FindBlocks find_blocks_;
  const absl::Duration unused_max_;
  BlockFiller filler_;
  CutOpener opener_;
  bool accepts_ = true;  // the rest: of the thread
  std::list<Reader> readers_;
  std::list<Unused> unused_;
  std::thread thread_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_MAP_SERVER_H_
