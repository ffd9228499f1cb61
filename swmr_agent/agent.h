// The files that the agent follows, their users, and their servers.
#ifndef H5MIRROR_SWMR_AGENT_AGENT_H_
#define H5MIRROR_SWMR_AGENT_AGENT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "swmr_agent/block_pool.h"
#include "swmr_agent/closer.h"
#include "swmr_agent/config.h"
#include "swmr_agent/followed_file.h"
#include "swmr_agent/published_file.h"
#include "swmr_agent/reader_rights.h"
#include "swmr_agent/upstream.h"

namespace h5mirror::agent {

// Files are followed from their first open on, until nobody has used them for Config::idle; those
// that are published always. Thread-safe.
class Agent {
 public:
  explicit Agent(const Config& config);
  ~Agent();
  Agent(const Agent&) = delete;

  // The server that readers name `target`, in gRPC's form. Errors: kFailedPrecondition none is.
  absl::StatusOr<Upstream*> FindServer(const std::string& target);
  // Whether a user of this host may read the file here. The agent's own user and root always may:
  // they can have its token. May wait for the server. Errors: as ReaderRights::Check().
  absl::Status CheckReader(Upstream& server, uid_t user, const std::string& name);
  // The same without a wait, as ReaderRights::Look().
  absl::Status LookAtReader(const Upstream& server, uid_t user, const std::string& name);
  using FilePtr = std::shared_ptr<FollowedFile>;
  // Null: it is not followed.
  FilePtr Find(const Upstream& server, const std::string& name);
  // Follows it from now on. Null: the agent follows as many files as it may.
  FilePtr Follow(Upstream& server, const std::string& name);

  // Once a second: lets go of unused files, and follows again files that are to be published. Waits
  // for no server.
  void OnTimer();
  // The agent's work for people, in one line.
  std::string Summary();

 private:
  using Key = std::pair<const Upstream*, std::string>;

  bool IsTrusted(uid_t user) const;
  FilePtr Start(Upstream& server, const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Config config_;
  SystemClock clock_;
  ReaderRights rights_;
  const std::shared_ptr<BlockPool> pool_;
  std::vector<std::unique_ptr<Upstream>> servers_;
  std::map<std::string, std::unique_ptr<PublishedFile>> published_;  // of the first server
  Closer closer_;  // of the objects that use all of the above
  absl::Mutex mutex_;
  std::map<Key, FilePtr> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_AGENT_H_
