// Opens cuts for readers that ask for the newest one on the socket for maps:
// docs/design/011-metadata-in-shared-memory.md.
#ifndef H5MIRROR_SWMR_AGENT_CUT_OPENER_H_
#define H5MIRROR_SWMR_AGENT_CUT_OPENER_H_

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/owned_fd.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "rpc/cut_map_format.h"
#include "swmr_agent/cut_memory.h"

namespace h5mirror::agent {

struct OpenedCut {
  v1::Snapshot snapshot;
  std::shared_ptr<const CutMemory> memory;  // null: there is none
};

// A reader's connection. The memory counts as ours until the last one lets go of this.
struct OpenReader {
  OwnedFd fd;
  std::shared_ptr<const CutMemory> memory{};  // written by the thread that answers
};

// Has threads, which wait for servers: as many as opens have been under way at once, within a
// bound, and some of them only for one user. Thread-safe.
class CutOpener {
 public:
  // May wait for the server. An error: the reader is told to open the file through gRPC.
  using Open =
      std::function<absl::StatusOr<OpenedCut>(uid_t user, const rpc::CutMapQuestion& question)>;

  static constexpr size_t kThreadsMax = 48;
  static constexpr size_t kOfUserMax = 16;

  explicit CutOpener(Open open) : open_(std::move(open)) {}
  // Waits for the opens that are under way; leaves out the rest.
  ~CutOpener();
  CutOpener(const CutOpener&) = delete;

  // Answers the question on the reader's connection. Where nothing is mapped, or the reader has
  // gone, it hangs up then.
  void Take(std::shared_ptr<OpenReader> reader, uid_t user, rpc::CutMapQuestion question);

 private:
  struct Task {
    std::shared_ptr<OpenReader> reader;
    uid_t user;
    rpc::CutMapQuestion question;
  };

  void Run();
  // The first task of a user that may have one more thread.
  std::deque<Task>::iterator FindTask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Task> Next();
  // The readers open their files through gRPC.
  void HangUpAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(const Task& task);

  const Open open_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<uid_t, size_t> busy_ ABSL_GUARDED_BY(mutex_);  // threads of a user
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_CUT_OPENER_H_
