// Versions that were asked for from outside ("h5mirror commit"), until the writer's next cut takes
// them.
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

  // The cut that took it became durable, or never will. The first call counts.
  void Done(absl::StatusOr<store::DurableCut> result) ABSL_LOCKS_EXCLUDED(mutex_);
  // nullopt: not done yet.
  std::optional<absl::StatusOr<store::DurableCut>> result() ABSL_LOCKS_EXCLUDED(mutex_);
  // `told` is called once, by the thread that calls Done(), which holds locks of the store: it must
  // not wait. At once, by this one, where it is done. nullptr: nothing is called any more.
  void SetOnDone(std::function<void()> told) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string user;  // who asks, by its token; empty: no tokens are wanted
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
  // False: a cut has taken it, and its result will come.
  bool TakeBack(std::string_view name, const std::shared_ptr<PendingCommit>& commit);
  // For the cut that is about to be made. Costs a load where nothing was posted.
  PendingCommits TakeAll(std::string_view name);

 private:
  absl::Mutex mutex_;
  std::atomic<int> count_{0};
  std::map<std::string, PendingCommits, std::less<>> posted_ ABSL_GUARDED_BY(mutex_);
};

// Of a version's comment, as CheckComment() has it.
inline constexpr size_t kCommentBytesMax = 4096;

// The comment of the version that a session of `user` makes with the comment `own`: `own` and what
// was asked for, one after the other, each once. A comment of anybody else is quoted behind its
// user's name, so that it is never taken for one of `user`: `asked for by token "bob": "ready"`.
// Where all of it would exceed what a comment may have, those texts are left out, then names too.
std::string JoinComments(const std::string& own, const std::string& user,
                         const PendingCommits& asked);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_COMMIT_BOARD_H_
