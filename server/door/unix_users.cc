#include "server/door/unix_users.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/name_service.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr int kGroupsMax = 65'536;  // the kernel's NGROUPS_MAX

absl::StatusOr<std::vector<gid_t>> GroupIdsOf(const passwd& user) {
  std::vector<gid_t> ids(64);
  for (;;) {
    int count = static_cast<int>(ids.size());
    if (getgrouplist(user.pw_name, user.pw_gid, ids.data(), &count) >= 0) {
      ids.resize(static_cast<size_t>(count));
      return ids;
    }
    if (count > kGroupsMax) return NameServiceFailed(user.pw_name, E2BIG);
    ids.resize(std::max(static_cast<size_t>(count), 2 * ids.size()));
  }
}

}  // namespace

absl::StatusOr<UnixUser> LookUpUnixUser(uid_t uid) {
  std::vector<char> buffer;
  passwd record{};
  passwd* user = nullptr;
  H5M_RETURN_IF_ERROR(
      FetchFromNameService(StrCat("uid ", uid), buffer, record, user,
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
    H5M_RETURN_IF_ERROR(
        FetchFromNameService(StrCat("gid ", id), group_buffer, group_record, found,
                             [id](auto&&... out) { return getgrgid_r(id, out...); }));
    if (found != nullptr) known.groups.emplace_back(found->gr_name);
  }
  return known;
}

struct UnixUsers::State : std::enable_shared_from_this<UnixUsers::State> {
  struct Entry {
    Found found = absl::UnavailableError("the user's name is being looked up: try again");
    bool is_known = false;
    bool is_asked = false;      // now
    bool has_failed = false;    // the last question
    bool is_due_again = false;  // once the answer to the question under way is there
    absl::Duration asked_at;
    absl::Duration fresh_until;
    absl::Duration answered;  // the last answer that was no failure
    std::vector<std::function<void()>> waiting;
  };

  State(Clock& its_clock, LookUp its_look_up) : clock(its_clock), look_up(std::move(its_look_up)) {}

  bool Counts(const Entry& entry) const {
    if (!entry.is_known || !entry.found.ok()) return entry.is_known;
    const absl::Duration now = clock.Monotonic();
    const bool fails = entry.has_failed || (entry.is_asked && now >= entry.asked_at + kAnswerMax);
    return now < entry.answered + (fails ? kOutageMax : kCountMax);
  }
  void AskIfDue(uid_t uid, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (entry.is_asked || (entry.is_known && clock.Monotonic() < entry.fresh_until)) return;
    entry.is_asked = true;
    entry.asked_at = clock.Monotonic();
    (entry.found.ok() ? asked_named : asked_new).push_back(uid);
    StartThreads();
  }
  // The first time.
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool HasNamed() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return ends || !asked_named.empty(); }
  bool HasAny() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return HasNamed() || !asked_new.empty(); }
  uid_t TakeAsked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::deque<uid_t>& asked = asked_named.empty() ? asked_new : asked_named;
    const uid_t uid = asked.front();
    asked.pop_front();
    return uid;
  }
  std::vector<std::function<void()>> Note(uid_t uid, absl::StatusOr<UnixUser> answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Clock& clock;  // not after `ends`
  const LookUp look_up;
  absl::Mutex mutex;
  absl::flat_hash_map<uid_t, Entry> entries ABSL_GUARDED_BY(mutex);
  // For the threads. Users that had a name go first, and have a thread that asks for nobody else:
  // others may come with many uids that have none.
  std::deque<uid_t> asked_named ABSL_GUARDED_BY(mutex);
  std::deque<uid_t> asked_new ABSL_GUARDED_BY(mutex);
  bool has_threads ABSL_GUARDED_BY(mutex) = false;
  bool has_changed ABSL_GUARDED_BY(mutex) = false;
  bool ends ABSL_GUARDED_BY(mutex) = false;
};

void UnixUsers::State::StartThreads() {
  if (std::exchange(has_threads, true)) return;
  for (const bool asks_for_new : {false, true}) {
    std::thread([state = shared_from_this(), asks_for_new] { Run(state, asks_for_new); }).detach();
  }
}

std::vector<std::function<void()>> UnixUsers::State::Note(uid_t uid,
                                                          absl::StatusOr<UnixUser> answer) {
  Entry& entry = entries[uid];
  const bool is_failure = !answer.ok() && !absl::IsNotFound(answer.status());
  const bool had_name = entry.found.ok();
  entry.fresh_until = std::exchange(entry.is_due_again, false)
                          ? absl::ZeroDuration()
                          : clock.Monotonic() + (answer.ok() ? kKeep : kKeepFailure);
  entry.has_failed = is_failure;
  if (!is_failure) entry.answered = clock.Monotonic();
  if (answer.ok()) {
    has_changed |= had_name && **entry.found != *answer;
    entry.found = std::make_shared<const UnixUser>(*std::move(answer));
  } else if (!had_name || !is_failure) {
    has_changed |= had_name;
    entry.found = answer.status();
  }
  entry.is_known = true;
  entry.is_asked = false;
  return std::exchange(entry.waiting, {});
}

UnixUsers::UnixUsers(Clock& clock, LookUp look_up)
    : state_(std::make_shared<State>(clock, std::move(look_up))) {}

UnixUsers::~UnixUsers() {
  std::vector<std::function<void()>> waiting;  // Destroyed without the lock.
  absl::MutexLock lock(&state_->mutex);
  state_->ends = true;
  for (auto& [uid, entry] : state_->entries) {
    std::move(entry.waiting.begin(), entry.waiting.end(), std::back_inserter(waiting));
    entry.waiting.clear();
  }
}

void UnixUsers::Run(const std::shared_ptr<State>& state, bool asks_for_new) {
  pthread_setname_np(pthread_self(), "h5m-users");
  for (;;) {
    uid_t uid;
    {
      absl::MutexLock lock(&state->mutex);
      state->mutex.Await(
          absl::Condition(state.get(), asks_for_new ? &State::HasAny : &State::HasNamed));
      if (state->ends) return;
      uid = state->TakeAsked();
    }
    absl::StatusOr<UnixUser> answer = state->look_up(uid);
    std::vector<std::function<void()>> waiting;
    {
      absl::MutexLock lock(&state->mutex);
      if (state->ends) return;
      waiting = state->Note(uid, std::move(answer));
    }
    for (const std::function<void()>& then : waiting) then();
  }
}

UnixUsers::Found UnixUsers::Find(uid_t uid) {
  absl::MutexLock lock(&state_->mutex);
  State::Entry& entry = state_->entries[uid];
  state_->AskIfDue(uid, entry);
  if (!entry.is_known || state_->Counts(entry)) return entry.found;
  return absl::UnavailableError(
      StrCat("the server asks its name service again for uid ", uid, ": try again"));
}

std::optional<UnixUsers::Found> UnixUsers::Peek(uid_t uid) const {
  absl::MutexLock lock(&state_->mutex);
  const auto its = state_->entries.find(uid);
  if (its == state_->entries.end() || !state_->Counts(its->second)) return std::nullopt;
  return its->second.found;
}

void UnixUsers::Await(uid_t uid, std::function<void()> then) {
  {
    absl::MutexLock lock(&state_->mutex);
    State::Entry& entry = state_->entries[uid];
    state_->AskIfDue(uid, entry);
    if (!state_->Counts(entry)) {
      entry.waiting.push_back(std::move(then));
      return;
    }
  }
  then();
}

void UnixUsers::Tend(const std::vector<uid_t>& held) {
  absl::MutexLock lock(&state_->mutex);
  for (const uid_t uid : held) state_->AskIfDue(uid, state_->entries[uid]);
  const absl::Duration now = state_->clock.Monotonic();
  absl::erase_if(state_->entries, [now](const auto& each) {
    const State::Entry& entry = each.second;
    return !entry.found.ok() && !entry.is_asked && entry.waiting.empty() &&
           now >= entry.fresh_until;
  });
}

void UnixUsers::AskAllAgain() {
  absl::MutexLock lock(&state_->mutex);
  for (auto& [uid, entry] : state_->entries) {
    entry.fresh_until = absl::ZeroDuration();
    entry.is_due_again = entry.is_asked;
  }
}

bool UnixUsers::TakeChange() {
  absl::MutexLock lock(&state_->mutex);
  return std::exchange(state_->has_changed, false);
}

}  // namespace h5mirror::server
