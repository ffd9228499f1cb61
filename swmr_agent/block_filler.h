// Fills windows for readers that wait for blocks: docs/design/052-blocks-in-shared-memory.md.
#ifndef H5MIRROR_SWMR_AGENT_BLOCK_FILLER_H_
#define H5MIRROR_SWMR_AGENT_BLOCK_FILLER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/owned_fd.h"
#include "rpc/shared_blocks_format.h"
#include "swmr_agent/cut_image.h"

namespace h5mirror::agent {

// The blocks of one cut for readers of one user.
struct SharedView {
  std::shared_ptr<CutImage> image;
  WindowPtr window;
  // Whether the user may still read the file, and the cut is here. May wait for the server.
  // Errors: kNotFound the cut is not here any more; those of Agent::CheckReader().
  std::function<absl::Status()> check;
  // The server has the same bytes for a reader that goes there: a version.
  bool is_version = false;
};

// A reader's connection. It stays open until the last of its blocks has been looked for.
struct BlockReader {
  OwnedFd fd;
  SharedView view;
  std::atomic<int> waiting = 0;  // of its questions
  std::atomic<int> looks = 0;    // in a row, that found it alone
};

// Has some threads, which wait for servers. Thread-safe.
class BlockFiller {
 public:
  BlockFiller();
  // Waits for the fetches that are under way; leaves out the rest.
  ~BlockFiller();
  BlockFiller(const BlockFiller&) = delete;

  // Answers each whole question in `asked`, and takes it out. False: the reader asks nonsense, or
  // for more at once than any reader does.
  bool Take(const std::shared_ptr<BlockReader>& reader, std::string* asked);

 private:
  struct Task {
    std::shared_ptr<BlockReader> reader;
    rpc::SharedWant want;
  };

  void Run();
  std::optional<Task> Next();
  // After a question of `task` that was answered: what its reader is likely to want next.
  void GetMore(const Task& task);
  bool is_stopping();

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> getting_more_ = 0;  // threads
  std::vector<std::thread> threads_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_BLOCK_FILLER_H_
