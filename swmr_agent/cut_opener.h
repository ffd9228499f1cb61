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
#include <string>
#include <thread>
#include <utility>
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

// Has as many threads as opens have been in progress at once, because an open waits for its server.
// Their number is bounded: in all, for a user, and for a user's opens at one server, which may
// hang. Thread-safe.
class CutOpener {
 public:
  // May wait for the server. An error: the reader is told to open the file through gRPC.
  using Open =
      std::function<absl::StatusOr<OpenedCut>(uid_t user, const rpc::CutMapQuestion& question)>;

  static constexpr size_t kThreadsMax = 48;
  static constexpr size_t kOfUserMax = 32;
  static constexpr size_t kAtServerMax = 16;  // of a user
  // A user with so many opens that wait for a thread gets no answer to a further one.
  static constexpr size_t kWaitingMax = 256;

  explicit CutOpener(Open open) : open_(std::move(open)) {}
  // Waits for the opens that are under way; leaves out the rest.
  ~CutOpener();
  CutOpener(const CutOpener&) = delete;

  // Answers the question on the reader's connection. If nothing is mapped, or the reader has gone,
  // it then hangs up. It drops the question of a reader that nobody else holds.
  void Take(std::shared_ptr<OpenReader> reader, uid_t user, rpc::CutMapQuestion question);

 private:
  struct Task {
    std::shared_ptr<OpenReader> reader;
    uid_t user;
    rpc::CutMapQuestion question;
  };

  // A user and a server.
  using Busy = std::pair<uid_t, std::string>;

  void Run();
  // False: the thread cannot be started.
  bool Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first task whose user may have one more thread at its server, or whose reader has gone.
  std::deque<Task>::iterator FindTask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBegin(const Task& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Task> Next();
  absl::StatusOr<OpenedCut> OpenCut(const Task& task) const;
  void Answer(const Task& task);

  const Open open_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<Busy, size_t> busy_ ABSL_GUARDED_BY(mutex_);  // threads
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_CUT_OPENER_H_
