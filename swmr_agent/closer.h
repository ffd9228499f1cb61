// Destroys files that are no longer followed, on a thread of its own.
#ifndef H5MIRROR_SWMR_AGENT_CLOSER_H_
#define H5MIRROR_SWMR_AGENT_CLOSER_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "swmr_agent/followed_file.h"

namespace h5mirror::agent {

// A file's thread may be in the middle of a question to a server that does not answer, and its
// destructor waits for that. Has one thread. Thread-safe.
class Closer {
 public:
  using FilePtr = std::shared_ptr<FollowedFile>;

  Closer();
  // Waits until all files are destroyed. They are cancelled at once, so this takes as long as the
  // slowest.
  ~Closer();
  Closer(const Closer&) = delete;

  // Null pointers are no files. Does not wait.
  void Take(std::vector<FilePtr> files);

 private:
  void Run();

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<FilePtr> files_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_CLOSER_H_
