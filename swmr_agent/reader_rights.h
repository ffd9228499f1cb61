// The rights of this host's users to read files through the agent, by the servers' answers.
#ifndef H5MIRROR_SWMR_AGENT_READER_RIGHTS_H_
#define H5MIRROR_SWMR_AGENT_READER_RIGHTS_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "h5mirror/v1/agents.pb.h"

namespace h5mirror::agent {

class Upstream;

// Errors: kNotFound  this host has no name for the user; kUnavailable  the name service failed.
absl::StatusOr<std::string> NameOfUser(uid_t uid);

// Keeps the servers' answers for seconds. Thread-safe.
class ReaderRights {
 public:
  // Both may wait, and are called without a lock. `ask`: CheckReader of that server.
  using Ask = std::function<absl::StatusOr<v1::CheckReaderResponse>(
      Upstream& server, const v1::CheckReaderRequest& request)>;
  using NameOf = std::function<absl::StatusOr<std::string>(uid_t uid)>;

  // How long a yes counts, and a no. A server that has no tables is asked again after kKeep, too.
  static constexpr absl::Duration kKeep = absl::Seconds(10);
  static constexpr absl::Duration kKeepNo = absl::Seconds(2);
  // While the server gives no answer, its last yes counts for this long.
  static constexpr absl::Duration kOutageMax = absl::Minutes(5);
  // A thread waits so long for another one's question.
  static constexpr absl::Duration kWait = absl::Milliseconds(1500);
  // Users that are remembered, and files of each.
  static constexpr size_t kUsersMax = 1024;
  static constexpr size_t kFilesMax = 1024;

  // `clock` must outlive this.
  ReaderRights(Clock& clock, Ask ask, NameOf name_of = NameOfUser);

  // Asks the server unless an answer counts. Threads that want the same answer share a question.
  // Errors: kNotFound          the user has no right to the file, or the agent has none.
  //         kPermissionDenied  the server does not let the agent ask for others.
  //         kUnavailable       the server cannot be asked just now.
  absl::Status Check(Upstream& server, uid_t user, const std::string& name);
  // The same, by known answers. kUnavailable: no answer counts.
  absl::Status Look(const Upstream& server, uid_t user, const std::string& name);

 private:
  struct Entry {
    absl::Status decision;
    absl::Duration until = -absl::InfiniteDuration();  // `decision` counts
    absl::Duration yes = -absl::InfiniteDuration();    // the last answer, if that was a yes
    bool is_asked = false;                             // by a thread, now
  };
  using Key = std::pair<const Upstream*, std::string>;
  struct User {
    std::map<Key, Entry> files;
    absl::Duration last_use = -absl::InfiniteDuration();
  };
  // A server without tables.
  struct Open {
    absl::Duration until = -absl::InfiniteDuration();
    absl::Duration seen = -absl::InfiniteDuration();
  };

  // Null: no answer counts.
  const absl::Status* Find(const Upstream& server, uid_t user, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry& EntryOf(const Upstream& server, uid_t user, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoomForUser() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::CheckReaderResponse> AskServer(Upstream& server, uid_t user,
                                                    const std::string& name);
  absl::Status Note(const Upstream& server, uid_t user, const std::string& name,
                    const absl::StatusOr<v1::CheckReaderResponse>& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteOpen(const Upstream& server, bool has_tables) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error for users, if the server does not let the agent ask; logged once a minute.
  absl::Status MayNotAsk(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const Ask ask_;
  const NameOf name_of_;
  absl::Mutex mutex_;
  absl::CondVar answered_;
  const absl::Status ok_;
  std::map<uid_t, User> users_ ABSL_GUARDED_BY(mutex_);
  std::map<const Upstream*, Open> open_ ABSL_GUARDED_BY(mutex_);  // one for each server
  absl::Duration last_log_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_READER_RIGHTS_H_
