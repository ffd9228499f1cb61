#include "server/state/commit_board.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

enum class Others { kQuoted, kNamed, kCounted };

void AddOnce(std::string part, std::vector<std::string>& parts) {
  if (part.empty() || std::find(parts.begin(), parts.end(), part) != parts.end()) return;
  parts.push_back(std::move(part));
}

std::string Join(const std::string& own, const std::string& user, const PendingCommits& asked,
                 Others others) {
  std::vector<std::string> parts;
  AddOnce(own, parts);
  size_t count = 0;
  for (const std::shared_ptr<PendingCommit>& commit : asked) {
    if (commit->user == user) {
      if (others == Others::kQuoted) AddOnce(commit->comment, parts);
      continue;
    }
    ++count;
    if (others == Others::kCounted) continue;
    std::string part = StrCat("asked for by \"", commit->user, "\"");
    if (others == Others::kQuoted && !commit->comment.empty()) {
      StrAppend(&part, ": ", Quoted(commit->comment));
    }
    AddOnce(std::move(part), parts);
  }
  if (others == Others::kCounted && count > 0) {
    parts.insert(parts.begin(), StrCat("asked for by others, ", count, " times"));
  }
  std::string joined;
  for (const std::string& part : parts) StrAppend(&joined, joined.empty() ? "" : "; ", part);
  return joined;
}

}  // namespace

void PendingCommit::Done(absl::StatusOr<store::DurableCut> result) {
  std::function<void()> told;
  {
    absl::MutexLock lock(&mutex_);
    if (result_.has_value()) return;
    result_ = std::move(result);
    told.swap(told_);
  }
  if (told) told();
}

std::optional<absl::StatusOr<store::DurableCut>> PendingCommit::result() {
  absl::MutexLock lock(&mutex_);
  return result_;
}

void PendingCommit::SetOnDone(std::function<void()> told) {
  std::function<void()> before;  // Destroyed without the lock.
  {
    absl::MutexLock lock(&mutex_);
    before.swap(told_);
    if (!result_.has_value()) {
      told_ = std::move(told);
      return;
    }
  }
  if (told) told();
}

std::shared_ptr<PendingCommit> CommitBoard::Post(std::string_view name, std::string user,
                                                 std::string comment,
                                                 const std::array<uint8_t, 16>& request_id) {
  auto commit = std::make_shared<PendingCommit>(std::move(user), std::move(comment), request_id);
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

std::string JoinComments(const std::string& own, const std::string& user,
                         const PendingCommits& asked) {
  for (const Others others : {Others::kQuoted, Others::kNamed, Others::kCounted}) {
    std::string joined = Join(own, user, asked, others);
    if (CheckComment(joined).ok()) return joined;
  }
  // The session's own comment is about as long as a comment may be.
  const std::string count = Join("", user, asked, Others::kCounted);
  constexpr std::string_view kDots = "...";
  const size_t room = kCommentBytesMax - count.size() - kDots.size() - 2;
  return Join(StrCat(own.substr(0, CharacterStart(own, room)), kDots), user, asked,
              Others::kCounted);
}

}  // namespace h5mirror::server
