#include "server/door/users_by_name.h"

#include <pwd.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/name_service.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

absl::Status Busy() {
  return absl::UnavailableError("the server's name service is asked for many users: try again");
}

}  // namespace

absl::StatusOr<uid_t> LookUpUidOfUser(const std::string& name) {
  std::vector<char> buffer;
  passwd record{};
  passwd* found = nullptr;
  H5M_RETURN_IF_ERROR(FetchFromNameService("a user", buffer, record, found, [&name](auto&&... out) {
    return getpwnam_r(name.c_str(), out...);
  }));
  if (found == nullptr) {
    return absl::NotFoundError(StrCat("the server's host has no user \"", name, "\""));
  }
  return found->pw_uid;
}

absl::StatusOr<uid_t> UsersByName::UidOf(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_.Monotonic();
  if (const auto known = entries_.find(name); known != entries_.end()) {
    if (now < known->second.fresh_until) return known->second.uid;
  } else if (entries_.size() >= kNamesMax) {
    absl::erase_if(entries_, [now](const auto& each) { return now >= each.second.fresh_until; });
    if (entries_.size() >= kNamesMax) return Busy();
  }
  if (asking_ >= kAskingMax) return Busy();
  ++asking_;
  mutex_.Unlock();
  absl::StatusOr<uid_t> answer = look_up_(name);
  mutex_.Lock();
  --asking_;
  return Note(name, std::move(answer));
}

absl::StatusOr<uid_t> UsersByName::Note(const std::string& name, absl::StatusOr<uid_t> answer) {
  Entry& entry = entries_[name];
  const absl::Duration now = clock_.Monotonic();
  const bool is_failure = !answer.ok() && !absl::IsNotFound(answer.status());
  entry.fresh_until = now + (answer.ok() ? kKeep : kKeepFailure);
  if (!is_failure) entry.answered = now;
  const bool old_counts = entry.uid.ok() && now < entry.answered + kOutageMax;
  if (!is_failure || !old_counts) entry.uid = std::move(answer);
  return entry.uid;
}

absl::StatusOr<UsersByName::User> UsersByName::Find(const std::string& name, absl::Duration wait) {
  H5M_ASSIGN_OR_RETURN(const uid_t uid, UidOf(name));
  // Shared, as the answer may come when nobody waits any more.
  const auto answered = std::make_shared<absl::Notification>();
  users_.Await(uid, [answered] { answered->Notify(); });
  answered->WaitForNotificationWithTimeout(wait);
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<const UnixUser> user, users_.Find(uid));
  return User{uid, std::move(user)};
}

}  // namespace h5mirror::server
