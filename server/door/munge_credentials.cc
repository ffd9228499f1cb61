#include "server/door/munge_credentials.h"

#include <pthread.h>

#include <deque>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/signal_block.h"
#include "base/strings.h"
#include "server/door/known_identities.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {
namespace {

// munged answers within a millisecond; a second thread hides one slow answer.
constexpr int kThreads = 2;
// Calls that wait for the answer about one credential. While munged hangs, calls come and are
// answered without it.
constexpr size_t kAwaitingMax = 64;

absl::Status Refused(std::string_view why) {
  return absl::UnauthenticatedError(StrCat("the credential of munge does not count: ", why));
}

// The checks that need no munged.
absl::Status CheckForm(std::string_view credential) {
  if (credential.size() <= MungeCredentials::kBytesMax && IsMungeCredential(credential)) {
    return absl::OkStatus();
  }
  return Refused(
      StrCat("it is no \"MUNGE:...:\" of at most ", MungeCredentials::kBytesMax, " bytes"));
}

MungeCredentials::Found IdentityOf(const absl::StatusOr<MungeClaim>& claim, absl::Time now) {
  if (!claim.ok()) return claim.status();
  if (claim->payload != kMungePayload) {
    return Refused("it was made for another program; set token = \"munge\" for h5mirror's own");
  }
  if (claim->left <= absl::ZeroDuration()) return Refused("it has expired; make a new one");
  const absl::Time expires = now + claim->left;
  return std::make_shared<const MungeIdentity>(
      MungeIdentity{claim->uid, expires, expires + MungeCredentials::kGrace});
}

}  // namespace

struct MungeCredentials::State : std::enable_shared_from_this<MungeCredentials::State> {
  struct Entry {
    Found found = absl::UnavailableError("munged is being asked about the credential: try again");
    bool is_known = false;
    absl::Time counts_until = absl::InfinitePast();
    std::vector<std::function<void()>> waiting;
  };
  struct Asked {
    Sha256Digest digest;
    std::string credential;
  };

  explicit State(Decode its_decode) : decode(std::move(its_decode)) {}

  // The entry of a credential; a new one, if its answer does not count any more. nullptr: no room.
  Entry* Ask(const Sha256Digest& digest, std::string_view credential)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool HasAny() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return ends || !asked.empty(); }
  std::vector<std::function<void()>> Note(const Sha256Digest& digest, Found found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void NoteIdentity(const Sha256Digest& digest, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void NoteFailure(const Sha256Digest& digest, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void ForgetOldest(std::deque<Sha256Digest>& digests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void ForgetOldestFailure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void ForgetExpired(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const Decode decode;
  absl::Mutex mutex;
  absl::flat_hash_map<Sha256Digest, Entry> entries ABSL_GUARDED_BY(mutex);
  // Of what is known, the oldest first.
  absl::flat_hash_map<uid_t, std::deque<Sha256Digest>> of_users ABSL_GUARDED_BY(mutex);
  std::deque<Sha256Digest> failures ABSL_GUARDED_BY(mutex);
  size_t known ABSL_GUARDED_BY(mutex) = 0;
  std::deque<Asked> asked ABSL_GUARDED_BY(mutex);  // for the threads
  size_t under_way ABSL_GUARDED_BY(mutex) = 0;
  int telling ABSL_GUARDED_BY(mutex) = 0;  // threads that call `then`s
  bool has_threads ABSL_GUARDED_BY(mutex) = false;
  bool ends ABSL_GUARDED_BY(mutex) = false;
  LivingIdentities<MungeIdentity, &MungeIdentity::ends> living ABSL_GUARDED_BY(mutex);
};

MungeCredentials::State::Entry* MungeCredentials::State::Ask(const Sha256Digest& digest,
                                                             std::string_view credential) {
  const auto found = entries.find(digest);
  if (found != entries.end()) {
    Entry& entry = found->second;
    if (!entry.is_known || absl::Now() < entry.counts_until) return &entry;
    if (entry.found.ok()) return &entry;  // It has expired: Find() says so.
  }
  if (asked.size() + under_way >= kWaitingMax) return nullptr;
  if (known >= kKnownMax) ForgetExpired(absl::Now());
  if (known >= kKnownMax) return nullptr;
  asked.push_back({digest, std::string(credential)});
  StartThreads();
  Entry& entry = entries[digest];
  entry = Entry{};
  return &entry;
}

void MungeCredentials::State::StartThreads() {
  if (std::exchange(has_threads, true)) return;
  const SignalBlock block;  // libmunge writes to sockets that munged may have closed.
  for (int i = 0; i < kThreads; ++i) {
    std::thread([state = shared_from_this()] { Run(state); }).detach();
  }
}

void MungeCredentials::State::ForgetOldest(std::deque<Sha256Digest>& digests) {
  const auto found = entries.find(digests.front());
  digests.pop_front();
  if (found == entries.end() || !found->second.is_known) return;
  known -= found->second.found.ok() ? 1 : 0;
  entries.erase(found);
}

// An entry that has become valid since then stays, because munged does not decode it twice.
void MungeCredentials::State::ForgetOldestFailure() {
  const auto found = entries.find(failures.front());
  const bool counts = found != entries.end() && found->second.is_known && found->second.found.ok();
  if (!counts) return ForgetOldest(failures);
  failures.pop_front();
}

void MungeCredentials::State::ForgetExpired(absl::Time now) {
  for (auto& [uid, digests] : of_users) {
    while (!digests.empty()) {
      const auto oldest = entries.find(digests.front());
      if (oldest != entries.end() && now < oldest->second.counts_until) break;
      ForgetOldest(digests);
    }
  }
  absl::erase_if(of_users, [](const auto& each) { return each.second.empty(); });
}

void MungeCredentials::State::NoteIdentity(const Sha256Digest& digest, Entry& entry) {
  entry.counts_until = (*entry.found)->expires;
  living.Add(*entry.found);
  ++known;
  std::deque<Sha256Digest>& digests = of_users[(*entry.found)->uid];
  digests.push_back(digest);
}

void MungeCredentials::State::NoteFailure(const Sha256Digest& digest, Entry& entry) {
  entry.counts_until = absl::Now() + kKeepFailure;
  failures.push_back(digest);
}

std::vector<std::function<void()>> MungeCredentials::State::Note(const Sha256Digest& digest,
                                                                 Found found) {
  Entry& entry = entries[digest];
  entry.found = std::move(found);
  entry.is_known = true;
  std::vector<std::function<void()>> waiting = std::exchange(entry.waiting, {});
  if (entry.found.ok()) {
    const uid_t uid = (*entry.found)->uid;
    NoteIdentity(digest, entry);
    if (of_users[uid].size() > kKnownOfUserMax) ForgetOldest(of_users[uid]);
  } else {
    NoteFailure(digest, entry);
    if (failures.size() > kFailuresMax) ForgetOldestFailure();
  }
  return waiting;
}

MungeCredentials::MungeCredentials(Decode decode)
    : state_(std::make_shared<State>(std::move(decode))) {}

MungeCredentials::~MungeCredentials() {
  std::vector<std::function<void()>> waiting;  // Destroyed without the lock.
  absl::MutexLock lock(&state_->mutex);
  state_->ends = true;
  for (auto& [digest, entry] : state_->entries) {
    std::move(entry.waiting.begin(), entry.waiting.end(), std::back_inserter(waiting));
    entry.waiting.clear();
  }
  const auto is_silent = [this]() ABSL_SHARED_LOCKS_REQUIRED(state_->mutex) {
    return state_->telling == 0;
  };
  state_->mutex.Await(absl::Condition(&is_silent));
}

void MungeCredentials::Run(const std::shared_ptr<State>& state) {
  pthread_setname_np(pthread_self(), "h5m-munge");
  for (;;) {
    State::Asked question;
    {
      absl::MutexLock lock(&state->mutex);
      state->mutex.Await(absl::Condition(state.get(), &State::HasAny));
      if (state->ends) return;
      question = std::move(state->asked.front());
      state->asked.pop_front();
      ++state->under_way;
    }
    Found found = IdentityOf(state->decode(question.credential), absl::Now());
    std::vector<std::function<void()>> waiting;
    {
      absl::MutexLock lock(&state->mutex);
      --state->under_way;
      if (state->ends) return;
      ++state->telling;
      waiting = state->Note(question.digest, std::move(found));
    }
    for (const std::function<void()>& then : waiting) then();
    absl::MutexLock lock(&state->mutex);
    --state->telling;
  }
}

MungeCredentials::Found MungeCredentials::Find(std::string_view credential) {
  if (absl::Status status = CheckForm(credential); !status.ok()) return status;
  const Sha256Digest digest = Sha256(credential);
  absl::MutexLock lock(&state_->mutex);
  const State::Entry* const entry = state_->Ask(digest, credential);
  if (entry == nullptr) {
    return absl::UnavailableError("too many callers wait for the server's munged: try again");
  }
  if (entry->found.ok() && absl::Now() >= entry->counts_until) {
    return Refused("it has expired; make a new one");
  }
  return entry->found;
}

std::optional<MungeCredentials::Found> MungeCredentials::Peek(std::string_view credential) const {
  if (absl::Status status = CheckForm(credential); !status.ok()) return Found(status);
  const Sha256Digest digest = Sha256(credential);
  absl::MutexLock lock(&state_->mutex);
  const auto its = state_->entries.find(digest);
  if (its == state_->entries.end() || !its->second.is_known) return std::nullopt;
  if (!its->second.found.ok() && absl::Now() >= its->second.counts_until) return std::nullopt;
  return its->second.found;
}

void MungeCredentials::Await(std::string_view credential, std::function<void()> then) {
  if (CheckForm(credential).ok()) {
    const Sha256Digest digest = Sha256(credential);
    absl::MutexLock lock(&state_->mutex);
    State::Entry* const entry = state_->Ask(digest, credential);
    if (entry != nullptr && !entry->is_known && entry->waiting.size() < kAwaitingMax) {
      entry->waiting.push_back(std::move(then));
      return;
    }
  }
  then();
}

absl::Status MungeCredentials::StillValid(const MungeIdentity& identity) const {
  if (absl::Now() < identity.ends) return absl::OkStatus();
  return Refused("it has expired; make a new one");
}

absl::Time MungeCredentials::NextExpiry() const {
  absl::MutexLock lock(&state_->mutex);
  state_->ForgetExpired(absl::Now());
  return state_->living.NextEnd(absl::Now());
}

std::vector<uid_t> MungeCredentials::Users() const {
  std::set<uid_t> users;
  absl::MutexLock lock(&state_->mutex);
  state_->living.ForEach([&](const MungeIdentity& identity) { users.insert(identity.uid); });
  return {users.begin(), users.end()};
}

}  // namespace h5mirror::server
