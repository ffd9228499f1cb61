#include "server/door/unix_users.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kBufferMin = 4 << 10;
constexpr size_t kBufferMax = 4 << 20;  // a group of a hundred thousand members
constexpr int kGroupsMax = 65'536;      // the kernel's NGROUPS_MAX

absl::Status Failed(std::string_view what, int error) {
  return absl::UnavailableError(
      StrCat("the name service failed for ", what, ": ", strerror(error), "; try again"));
}

// Calls one of the get..._r functions with a buffer that is large enough. `found` stays null, if
// there is no such entry.
template <typename Record, typename Get>
absl::Status Fetch(std::string_view what, std::vector<char>& buffer, Record& record, Record*& found,
                   const Get& get) {
  for (buffer.resize(kBufferMin);; buffer.resize(2 * buffer.size())) {
    const int error = get(&record, buffer.data(), buffer.size(), &found);
    if (error == 0) return absl::OkStatus();
    if (error == EINTR) continue;
    // What the libraries answer for an entry that is not there (getpwuid(3)).
    if (error == ENOENT || error == ESRCH) return absl::OkStatus();
    if (error != ERANGE || buffer.size() >= kBufferMax) return Failed(what, error);
  }
}

absl::StatusOr<std::vector<gid_t>> GroupIdsOf(const passwd& user) {
  std::vector<gid_t> ids(64);
  for (;;) {
    int count = static_cast<int>(ids.size());
    if (getgrouplist(user.pw_name, user.pw_gid, ids.data(), &count) >= 0) {
      ids.resize(static_cast<size_t>(count));
      return ids;
    }
    if (count > kGroupsMax) return Failed(user.pw_name, E2BIG);
    ids.resize(std::max(static_cast<size_t>(count), 2 * ids.size()));
  }
}

}  // namespace

absl::StatusOr<UnixUser> LookUpUnixUser(uid_t uid) {
  std::vector<char> buffer;
  passwd record{};
  passwd* user = nullptr;
  H5M_RETURN_IF_ERROR(Fetch(StrCat("uid ", uid), buffer, record, user,
                            [uid](auto&&... out) { return getpwuid_r(uid, out...); }));
  if (user == nullptr) {
    return absl::NotFoundError(StrCat("uid ", uid, " has no name on the server's host"));
  }
  UnixUser known{user->pw_name, {}};
  H5M_ASSIGN_OR_RETURN(const std::vector<gid_t> ids, GroupIdsOf(*user));
  for (const gid_t id : ids) {
    std::vector<char> group_buffer;
    group group_record{};
    group* found = nullptr;
    H5M_RETURN_IF_ERROR(Fetch(StrCat("gid ", id), group_buffer, group_record, found,
                              [id](auto&&... out) { return getgrgid_r(id, out...); }));
    if (found != nullptr) known.groups.emplace_back(found->gr_name);
  }
  return known;
}

UnixUsers::UnixUsers(Clock& clock, LookUp look_up) : clock_(clock), look_up_(std::move(look_up)) {}

UnixUsers::~UnixUsers() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void UnixUsers::AskIfDue(uid_t uid, Entry& entry) {
  if (entry.is_asked || (entry.is_known && clock_.Monotonic() < entry.fresh_until)) return;
  entry.is_asked = true;
  asked_.push_back(uid);
  while (threads_.size() < kThreads) {
    threads_.emplace_back([this] { Run(); });
    pthread_setname_np(threads_.back().native_handle(), "h5m-users");
  }
}

void UnixUsers::Run() {
  for (;;) {
    uid_t uid;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &UnixUsers::HasNews));
      if (ends_) return;
      uid = asked_.front();
      asked_.pop_front();
    }
    Ask(uid);
  }
}

void UnixUsers::Ask(uid_t uid) {
  absl::StatusOr<UnixUser> answer = look_up_(uid);
  std::vector<std::function<void()>> waiting;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[uid];
    entry.fresh_until = clock_.Monotonic() + (answer.ok() ? kKeep : kKeepFailure);
    if (answer.ok()) {
      entry.found = std::make_shared<const UnixUser>(*std::move(answer));
    } else if (!entry.found.ok() || absl::IsNotFound(answer.status())) {
      entry.found = answer.status();
    }
    entry.is_known = true;
    entry.is_asked = false;
    waiting.swap(entry.waiting);
  }
  for (const std::function<void()>& then : waiting) then();
}

UnixUsers::Found UnixUsers::Find(uid_t uid) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[uid];
  AskIfDue(uid, entry);
  return entry.found;
}

bool UnixUsers::Knows(uid_t uid) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(uid);
  return found != entries_.end() && found->second.is_known;
}

void UnixUsers::Await(uid_t uid, std::function<void()> then) {
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[uid];
    AskIfDue(uid, entry);
    if (!entry.is_known) {
      entry.waiting.push_back(std::move(then));
      return;
    }
  }
  then();
}

}  // namespace h5mirror::server
