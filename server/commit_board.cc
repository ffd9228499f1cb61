#include "server/commit_board.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "server/convert.h"

namespace h5mirror::server {

void PendingCommit::Done(absl::StatusOr<store::DurableCut> result) {
  absl::MutexLock lock(&mutex_);
  if (!result_.has_value()) result_ = std::move(result);
}

std::optional<absl::StatusOr<store::DurableCut>> PendingCommit::Await(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return result_.has_value(); };
  mutex_.AwaitWithTimeout(absl::Condition(&done), timeout);
  return result_;
}

std::shared_ptr<PendingCommit> CommitBoard::Post(std::string_view name, std::string comment,
                                                 const std::array<uint8_t, 16>& request_id) {
  auto commit = std::make_shared<PendingCommit>(std::move(comment), request_id);
  absl::MutexLock lock(&mutex_);
  posted_[std::string(name)].push_back(commit);
  ++count_;
  return commit;
}

bool CommitBoard::TakeBack(std::string_view name, const std::shared_ptr<PendingCommit>& commit) {
  absl::MutexLock lock(&mutex_);
  const auto of_file = posted_.find(name);
  if (of_file == posted_.end()) return false;
  PendingCommits& commits = of_file->second;
  const auto found = std::find(commits.begin(), commits.end(), commit);
  if (found == commits.end()) return false;
  commits.erase(found);
  --count_;
  if (commits.empty()) posted_.erase(of_file);
  return true;
}

PendingCommits CommitBoard::TakeAll(std::string_view name) {
  if (count_ == 0) return {};
  absl::MutexLock lock(&mutex_);
  const auto found = posted_.find(name);
  if (found == posted_.end()) return {};
  PendingCommits commits = std::move(found->second);
  posted_.erase(found);
  count_ -= static_cast<int>(commits.size());
  return commits;
}

std::string JoinComments(const std::string& own, const PendingCommits& asked) {
  std::vector<std::string> parts;
  if (!own.empty()) parts.push_back(own);
  for (const std::shared_ptr<PendingCommit>& commit : asked) {
    const bool known = std::find(parts.begin(), parts.end(), commit->comment) != parts.end();
    if (!commit->comment.empty() && !known) parts.push_back(commit->comment);
  }
  std::string joined;
  for (const std::string& part : parts) StrAppend(&joined, joined.empty() ? "" : "; ", part);
  return CheckComment(joined).ok() ? joined : parts.front();
}

}  // namespace h5mirror::server
