#include "swmr_agent/reader_rights.h"

#include <pwd.h>

#include <algorithm>
#include <vector>

#include "base/name_service.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "spdlog/spdlog.h"

namespace h5mirror::agent {
namespace {

constexpr absl::Duration kLogEvery = absl::Minutes(1);

// The words of the server for a caller that has no right to a file.
absl::Status Hidden(std::string_view name) {
  return absl::NotFoundError(StrCat(name, ": there is no such file, or you have no right to it"));
}

absl::Status CannotAsk(std::string_view name, const absl::Status& why) {
  return absl::UnavailableError(
      StrCat(name, ": the server cannot be asked whether you may read it: ", ToStd(why.message())));
}

// The server has answered, and not about the user.
bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
}

}  // namespace

absl::StatusOr<std::string> NameOfUser(uid_t uid) {
  std::vector<char> buffer;
  passwd record{};
  passwd* found = nullptr;
  H5M_RETURN_IF_ERROR(
      FetchFromNameService(StrCat("uid ", uid), buffer, record, found,
                           [uid](auto&&... out) { return getpwuid_r(uid, out...); }));
  if (found == nullptr) return absl::NotFoundError(StrCat("uid ", uid, " has no name here"));
  return std::string(found->pw_name);
}

ReaderRights::ReaderRights(Clock& clock, Ask ask, NameOf name_of)
    : clock_(clock), ask_(std::move(ask)), name_of_(std::move(name_of)) {}

const absl::Status* ReaderRights::Find(const Upstream& server, uid_t user,
                                       const std::string& name) {
  const absl::Duration now = clock_.Monotonic();
  const auto open = open_.find(&server);
  if (open != open_.end() && now < open->second.until) return &ok_;
  const auto its = users_.find(user);
  if (its == users_.end()) return nullptr;
  its->second.last_use = now;
  const auto entry = its->second.files.find({&server, name});
  if (entry == its->second.files.end() || now >= entry->second.until) return nullptr;
  return &entry->second.decision;
}

void ReaderRights::MakeRoomForUser() {
  if (users_.size() < kUsersMax) return;
  auto oldest = users_.end();
  for (auto at = users_.begin(); at != users_.end(); ++at) {
    const bool is_busy = std::any_of(at->second.files.begin(), at->second.files.end(),
                                     [](const auto& file) { return file.second.is_asked; });
    if (is_busy) continue;
    if (oldest == users_.end() || at->second.last_use < oldest->second.last_use) oldest = at;
  }
  if (oldest != users_.end()) users_.erase(oldest);
}

ReaderRights::Entry& ReaderRights::EntryOf(const Upstream& server, uid_t user,
                                           const std::string& name) {
  if (!users_.contains(user)) MakeRoomForUser();
  User& its = users_[user];
  its.last_use = clock_.Monotonic();
  const auto found = its.files.find({&server, name});
  if (found != its.files.end()) return found->second;
  if (its.files.size() >= kFilesMax) {
    auto oldest = its.files.end();
    for (auto at = its.files.begin(); at != its.files.end(); ++at) {
      if (at->second.is_asked) continue;
      if (oldest == its.files.end() || at->second.until < oldest->second.until) oldest = at;
    }
    if (oldest != its.files.end()) its.files.erase(oldest);
  }
  return its.files[{&server, name}];
}

absl::StatusOr<v1::CheckReaderResponse> ReaderRights::AskServer(Upstream& server, uid_t user,
                                                                const std::string& name) {
  v1::CheckReaderRequest request;
  request.set_name(name);
  absl::StatusOr<std::string> user_name = name_of_(user);
  if (user_name.ok()) {
    request.set_user(*std::move(user_name));
  } else if (!absl::IsNotFound(user_name.status())) {
    return user_name.status();
  }
  return ask_(server, request);
}

void ReaderRights::NoteOpen(const Upstream& server, bool has_tables) {
  const absl::Duration now = clock_.Monotonic();
  open_[&server] = has_tables ? Open{} : Open{now + kKeep, now};
}

absl::Status ReaderRights::MayNotAsk(const absl::Status& why) {
  const absl::Duration now = clock_.Monotonic();
  const std::string_view text = absl::IsUnimplemented(why)
                                    ? "the server is too old to be asked about users"
                                    : ToStd(why.message());
  if (now - last_log_ >= kLogEvery) {
    last_log_ = now;
    spdlog::warn("other users of this host are not served: {}", text);
  }
  return absl::PermissionDeniedError(StrCat("the agent serves its own user only: ", text));
}

absl::Status ReaderRights::Note(const Upstream& server, uid_t user, const std::string& name,
                                const absl::StatusOr<v1::CheckReaderResponse>& answer) {
  const absl::Duration now = clock_.Monotonic();
  Entry& entry = EntryOf(server, user, name);
  entry.is_asked = false;
  if (answer.ok()) NoteOpen(server, answer->has_tables());
  if (answer.ok() && (!answer->has_tables() || answer->may_read())) {
    entry.decision = absl::OkStatus();
    entry.until = now + kKeep;
    entry.yes = now;
  } else if (answer.ok() || absl::IsNotFound(answer.status())) {
    entry = {.decision = Hidden(name), .until = now + kKeepNo};
  } else if (IsRefusal(answer.status())) {
    entry = {.decision = MayNotAsk(answer.status()), .until = now + kKeepNo};
    NoteOpen(server, /*has_tables=*/true);
  } else {
    const absl::Duration outage_end = std::max(entry.yes, open_[&server].seen) + kOutageMax;
    const bool counts = now < outage_end;
    entry.decision = counts ? absl::OkStatus() : CannotAsk(name, answer.status());
    entry.until = counts ? std::min(now + kKeep, outage_end) : now + kKeepNo;
  }
  return entry.decision;
}

absl::Status ReaderRights::Check(Upstream& server, uid_t user, const std::string& name) {
  const absl::Time deadline = absl::Now() + kWait;
  absl::MutexLock lock(&mutex_);
  for (;;) {
    if (const absl::Status* known = Find(server, user, name); known != nullptr) return *known;
    Entry& entry = EntryOf(server, user, name);
    if (!entry.is_asked) {
      entry.is_asked = true;
      break;
    }
    if (answered_.WaitWithDeadline(&mutex_, deadline)) {
      return absl::UnavailableError(
          StrCat(name, ": the server has not answered yet whether you may read it: try again"));
    }
  }
  mutex_.Unlock();
  const absl::StatusOr<v1::CheckReaderResponse> answer = AskServer(server, user, name);
  mutex_.Lock();
  absl::Status decision = Note(server, user, name, answer);
  answered_.SignalAll();
  return decision;
}

absl::Status ReaderRights::Look(const Upstream& server, uid_t user, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (const absl::Status* known = Find(server, user, name); known != nullptr) return *known;
  return absl::UnavailableError(
      StrCat(name, ": the server cannot be asked now whether you may read it: try again"));
}

}  // namespace h5mirror::agent
