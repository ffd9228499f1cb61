// Requests for a version from outside ("h5mirror commit"). They wait here until the writer's next
// cut takes them.
#ifndef H5MIRROR_SERVER_STATE_COMMIT_BOARD_H_
#define H5MIRROR_SERVER_STATE_COMMIT_BOARD_H_

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// One request. Thread-safe.
class PendingCommit {
 public:
  PendingCommit(std::string user_in, std::string comment_in,
                const std::array<uint8_t, 16>& request_id_in)
      : user(std::move(user_in)), comment(std::move(comment_in)), request_id(request_id_in) {}

  // The cut that took the request is durable, or never will be. The first call counts.
  void Done(absl::StatusOr<store::DurableCut> result) ABSL_LOCKS_EXCLUDED(mutex_);
  // nullopt: not done yet.
  std::optional<absl::StatusOr<store::DurableCut>> result() ABSL_LOCKS_EXCLUDED(mutex_);
  // `told` is called once, by the thread that calls Done(), with locks of the store held: it must
  // not wait. If the request is done, this calls it at once. nullptr: no further call.
  void SetOnDone(std::function<void()> told) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string user;  // the name of the caller's token; empty: the server asks for none
  const std::string comment;
  const std::array<uint8_t, 16> request_id;

 private:
  absl::Mutex mutex_;
  std::optional<absl::StatusOr<store::DurableCut>> result_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> told_ ABSL_GUARDED_BY(mutex_);
};

using PendingCommits = std::vector<std::shared_ptr<PendingCommit>>;

// Thread-safe.
class CommitBoard {
 public:
  std::shared_ptr<PendingCommit> Post(std::string_view name, std::string user, std::string comment,
                                      const std::array<uint8_t, 16>& request_id);
  // False: a cut has taken the request, and its result will come.
  bool TakeBack(std::string_view name, const std::shared_ptr<PendingCommit>& commit);
  // All requests of a file, for the cut that is about to be made. Costs one load if there are none.
  PendingCommits TakeAll(std::string_view name);

 private:
  absl::Mutex mutex_;
  std::atomic<int> count_{0};
  std::map<std::string, PendingCommits, std::less<>> posted_ ABSL_GUARDED_BY(mutex_);
};

// The longest comment of a version, as CheckComment() has it.
inline constexpr size_t kCommentBytesMax = 4096;

// The comment of the version that a session of `user` makes with the comment `own`: `own` and the
// comments of `commits`, one after the other, each once. A comment of another user is quoted behind
// that user's name, so that it cannot pass for one of `user`: `asked for by token "bob": "ready"`.
// If the whole is too long, other users' texts are left out, then names too.
std::string JoinComments(const std::string& own, const std::string& user,
                         const PendingCommits& asked);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_COMMIT_BOARD_H_
