#include "server/calls/callers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/call.h"
#include "server/calls/metadata_ahead.h"
#include "server/door/call_gate.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kPartBytesMin = kMetadataBlockBytes;
constexpr uint64_t kPartBytesMax = 8 * kMetadataBlockBytes;
constexpr uint64_t kReadBytes = 2 * kPartBytesMin;
constexpr uint64_t kFollowBytes = 256 << 10;
// gRPC holds 15 KiB for a call that waits, measured with 20,000.
constexpr uint64_t kWaitBytes = 64 << 10;
// A request up to this size is not counted. A parsed one has some four times its bytes: 16 for a
// range that came as 4.
constexpr uint64_t kRequestBytesFree = 4096;
constexpr uint64_t kParsedFactor = 4;
// A call that was to end is cancelled after this long: nobody reads what was sent.
constexpr absl::Duration kEndingMax = absl::Milliseconds(400);
// After a look at rights that a disk or a name service did not answer.
constexpr absl::Duration kLookAgainAfter = absl::Seconds(1);
// A caller's share of the threads of short calls. It may be large, because these end soon.
constexpr int kThreadSharePercent = 75;
constexpr absl::Duration kLogEvery = absl::Seconds(10);
// With more principals refused at once the oldest are forgotten.
constexpr size_t kRefusalsMax = 1024;

const char* NameOf(CallUse use) {
  switch (use) {
    case CallUse::kSession:
      return "sessions";
    case CallUse::kRead:
      return "reads";
    case CallUse::kWait:
      return "waiting calls";
    case CallUse::kFollow:
      return "followers";
    case CallUse::kThread:
      return "calls at once";
  }
  return "?";
}

// Tokens and users of Unix sockets may have the same names. A user without a name is known by its
// uid there: else it had a share for each connection.
std::string KeyOf(const Principal& principal, const CallSource& source) {
  if (principal.name.empty()) {
    return source.uid().has_value() ? StrCat("unix:", AddressOf(source, principal))
                                    : source.connection_key();
  }
  return principal.issuer == Principal::Issuer::kToken
             ? principal.name
             : StrCat(IssuerName(principal.issuer), ":", principal.name);
}

// The limit of its caller against which a call counts. CloseSnapshot counts against none, because
// it frees resources.
std::optional<LimitKind> SlotOf(CallUse use, std::string_view method) {
  if (method == "CloseSnapshot") return std::nullopt;
  switch (use) {
    case CallUse::kSession:
      return LimitKind::kSessions;
    case CallUse::kRead:
    case CallUse::kWait:
    case CallUse::kFollow:
      return LimitKind::kStreams;
    case CallUse::kThread:
      break;
  }
  return std::nullopt;
}

const char* WayOut(CallUse use) {
  switch (use) {
    case CallUse::kSession:
      return "close files, or have the server's max_sessions or caller_share raised";
    case CallUse::kThread:
      return "try again";
    default:
      return "try again, or have the server's memory_max or caller_share raised";
  }
}

}  // namespace

CallCapacity CallCapacity::Of(uint64_t memory_max_bytes, int max_sessions, int threads,
                              int share_percent) {
  CallCapacity capacity;
  capacity.sessions = static_cast<uint64_t>(max_sessions);
  capacity.read_bytes = memory_max_bytes / 2;
  capacity.read_data_bytes = memory_max_bytes / 8;
  capacity.waits = memory_max_bytes / kWaitBytes;
  capacity.follows = memory_max_bytes / kFollowBytes;
  capacity.threads = static_cast<uint64_t>(threads);
  capacity.share_percent = share_percent;
  return capacity;
}

uint64_t ReadCost(uint64_t request_bytes) {
  const uint64_t counted = std::max(request_bytes, kRequestBytesFree) - kRequestBytesFree;
  return kReadBytes + kParsedFactor * counted;
}

struct Callers::Entry {
  Principal principal;
  std::string key;
  const char* method = "";
  std::string peer;          // for the audit log, as uid
  std::optional<uid_t> uid;  // at the other end of a Unix socket
  absl::Duration started;
  CallUse use = CallUse::kThread;
  uint64_t cost = 0;
  bool is_of_http = false;
  std::optional<absl::Duration> revoked_at;  // of the lock of Callers

  std::atomic<bool> is_revoked = false;
  absl::Mutex mutex;
  Needs needs ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const CallSource> source ABSL_GUARDED_BY(mutex);  // null: it has ended
  std::function<void(const absl::Status&)> end ABSL_GUARDED_BY(mutex);
  absl::Status status ABSL_GUARDED_BY(mutex);      // why it is revoked
  bool is_done ABSL_GUARDED_BY(mutex) = false;     // and the audit log has it
  std::string claimed ABSL_GUARDED_BY(mutex);      // the client's own account of itself
  CallerLimits::Slot slot ABSL_GUARDED_BY(mutex);  // while its caller is counted

  Needs Needed() {
    absl::MutexLock lock(&mutex);
    return needs;
  }
};

Callers::Callers(const Authenticator& authenticator, Clock& clock, CallCapacity capacity,
                 AuditLog* audit, CallerLimits* limits)
    : authenticator_(authenticator),
      clock_(clock),
      audit_(audit),
      limits_(limits),
      read_data_bytes_(capacity.read_data_bytes),
      sessions_(capacity.sessions, capacity.share_percent),
      read_bytes_(capacity.read_bytes, capacity.share_percent),
      waits_(capacity.waits, capacity.share_percent),
      follows_(capacity.follows, capacity.share_percent),
      threads_(capacity.threads, kThreadSharePercent) {}

Callers::~Callers() {
  // All calls have ended. The last of them may just be leaving Remove() in a thread of gRPC's.
  absl::MutexLock lock(&mutex_);
}

Callers::Ticket& Callers::Ticket::operator=(Ticket&& other) noexcept {
  Release();
  callers_ = other.callers_;
  entry_ = std::move(other.entry_);
  return *this;
}

const Principal& Callers::Ticket::principal() const { return entry_->principal; }

absl::Status Callers::RequireFor(const Callers& callers, Entry& entry, const Need& need) {
  // The need is first stored, then checked. So a reload in between is seen by this check or by the
  // reload's own.
  {
    absl::MutexLock lock(&entry.mutex);
    entry.needs.push_back(need);
  }
  return callers.authenticator_.StillMay(entry.principal, {need});
}

absl::Status Callers::Ticket::Require(Need need) const {
  return RequireFor(*callers_, *entry_, need);
}

LateCheck Callers::Ticket::RequireLater(Need need) const {
  const auto before = [callers = callers_, entry = entry_, need] {
    return RequireFor(*callers, *entry, need);
  };
  const auto after = [callers = callers_, entry = entry_, need = std::move(need)] {
    return callers->authenticator_.StillMay(entry->principal, {need});
  };
  return {before, after};
}

AuditRecord Callers::Ticket::Record(AuditRecord::Event event) const {
  AuditRecord record{.event = event,
                     .time = callers_->clock_.Now(),
                     .took = callers_->clock_.Monotonic() - entry_->started,
                     .caller = &entry_->principal,
                     .peer = entry_->peer,
                     .uid = entry_->uid,
                     .method = entry_->method};
  absl::MutexLock lock(&entry_->mutex);
  record.needs = entry_->needs;
  record.claimed = entry_->claimed;
  return record;
}

void Callers::Ticket::Began(std::string claimed) const {
  if (callers_->audit_ == nullptr) return;
  {
    absl::MutexLock lock(&entry_->mutex);
    entry_->claimed = std::move(claimed);
  }
  callers_->audit_->Write(Record(AuditRecord::Event::kBegin));
}

void Callers::Ticket::Done(const absl::Status& status, const CallBytes& bytes,
                           int http_status) const {
  if (callers_ == nullptr || entry_ == nullptr) return;
  // Before the client hears of the end: its next call may take the place.
  CallerLimits::Slot slot;
  {
    absl::MutexLock lock(&entry_->mutex);
    slot = std::move(entry_->slot);
    if (std::exchange(entry_->is_done, true)) return;
  }
  if (callers_->audit_ == nullptr) return;
  AuditRecord record = Record(AuditRecord::Event::kEnd);
  record.bytes = bytes;
  record.status = status;
  record.http_status = http_status;
  callers_->audit_->Write(record);
}

const std::string& Callers::Ticket::key() const { return entry_->key; }

uint64_t Callers::Ticket::CountBytes(uint64_t bytes) const {
  if (callers_->limits_ == nullptr || !callers_->limits_->is_on()) return 0;
  absl::MutexLock lock(&entry_->mutex);
  return entry_->slot.is_there() ? entry_->slot.CountBytes(bytes) : 0;
}

absl::Duration Callers::Ticket::ReadAfter(uint64_t place, bool is_first) const {
  if (place == 0 || !callers_->limits_->is_on()) return absl::ZeroDuration();
  absl::MutexLock lock(&entry_->mutex);
  return entry_->slot.is_there() ? entry_->slot.Until(place, is_first) : absl::ZeroDuration();
}

absl::Status Callers::Ticket::revoked() const {
  if (!entry_->is_revoked) return absl::OkStatus();
  absl::MutexLock lock(&entry_->mutex);
  return entry_->status;
}

void Callers::Ticket::OnRevoke(std::function<void(const absl::Status&)> end) {
  absl::Status status;
  {
    absl::MutexLock lock(&entry_->mutex);
    status = entry_->status;
    if (status.ok()) entry_->end = std::move(end);
  }
  if (!status.ok()) end(status);
}

void Callers::Ticket::Release() {
  if (entry_ == nullptr) return;
  const absl::Status why = revoked();
  // Does nothing if the end was told before.
  Done(why.ok() ? absl::CancelledError("the caller has gone") : why);
  const std::shared_ptr<Entry> entry = std::move(entry_);
  entry_ = nullptr;
  std::function<void(const absl::Status&)> end;  // Destroyed without the lock.
  CallerLimits::Slot slot;
  {
    absl::MutexLock lock(&entry->mutex);
    entry->source = nullptr;
    end.swap(entry->end);
    slot = std::move(entry->slot);
  }
  callers_->Remove(entry);
}

FairLimit& Callers::LimitOf(CallUse use) {
  switch (use) {
    case CallUse::kSession:
      return sessions_;
    case CallUse::kRead:
      return read_bytes_;
    case CallUse::kWait:
      return waits_;
    case CallUse::kFollow:
      return follows_;
    case CallUse::kThread:
      break;
  }
  return threads_;
}

absl::StatusOr<Callers::Ticket> Callers::Admit(std::shared_ptr<const CallSource> source,
                                               const char* method, Needs needs, CallUse use,
                                               uint64_t cost) {
  const absl::StatusOr<Principal> principal = source->Authenticate(authenticator_);
  absl::StatusOr<Ticket> ticket = principal.ok()
                                      ? AdmitKnown(source, method, *principal, needs, use, cost)
                                      : absl::StatusOr<Ticket>(principal.status());
  if (!ticket.ok() && audit_ != nullptr) {
    audit_->Write({.event = AuditRecord::Event::kEnd,
                   .time = clock_.Now(),
                   .caller = principal.ok() ? &*principal : nullptr,
                   .peer = source->peer(),
                   .uid = source->uid(),
                   .method = method,
                   .needs = std::move(needs),
                   .status = ticket.status(),
                   .http_status = source->HttpStatusOf(ticket.status())});
  }
  return ticket;
}

absl::StatusOr<CallerLimits::Slot> Callers::EnterLimits(const CallSource& source,
                                                        const char* method,
                                                        const Principal& principal, CallUse use) {
  std::shared_ptr<CallBrake> brake;
  auto slot = limits_->Enter({principal, AddressOf(source, principal), method, SlotOf(use, method)},
                             &brake);
  if (brake != nullptr) source.Brake(authenticator_, std::move(brake));
  return slot;
}

void Callers::Adopt(Entry& entry) {
  absl::MutexLock lock(&entry.mutex);
  if (entry.slot.is_there() || entry.source == nullptr || entry.is_done) return;
  entry.slot = limits_->Adopt({entry.principal, AddressOf(*entry.source, entry.principal),
                               entry.method, SlotOf(entry.use, entry.method)});
}

void Callers::SetLimits(std::vector<LimitRule> rules) {
  limits_->SetRules(std::move(rules));
  if (!limits_->is_on()) return;
  for (const std::shared_ptr<Entry>& entry : Running()) Adopt(*entry);
}

std::vector<std::shared_ptr<Callers::Entry>> Callers::Running() {
  absl::MutexLock lock(&mutex_);
  return {entries_.begin(), entries_.end()};
}

size_t Callers::InHand() {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(),
                                           [](const auto& entry) { return !entry->is_of_http; }));
}

absl::StatusOr<Callers::Ticket> Callers::AdmitKnown(std::shared_ptr<const CallSource> source,
                                                    const char* method, const Principal& principal,
                                                    const Needs& needs, CallUse use,
                                                    uint64_t cost) {
  const bool is_counted = limits_ != nullptr && limits_->is_on();
  CallerLimits::Slot slot;
  if (is_counted) {
    H5M_ASSIGN_OR_RETURN(slot, EnterLimits(*source, method, principal, use));
  }
  for (const Need& need : needs) H5M_RETURN_IF_ERROR(authenticator_.Check(principal, need));
  std::string key = KeyOf(principal, *source);
  if (!LimitOf(use).Take(key, cost)) return TooMany(use, principal, *source, key);
  auto entry = std::make_shared<Entry>();
  entry->principal = principal;
  entry->key = std::move(key);
  entry->method = method;
  if (audit_ != nullptr) {
    entry->peer = source->peer();
    entry->uid = source->uid();
  }
  entry->started = clock_.Monotonic();
  entry->use = use;
  entry->cost = cost;
  entry->is_of_http = source->HttpStatusOf(absl::UnavailableError("")) != 0;
  {
    absl::MutexLock lock(&entry->mutex);
    entry->needs = needs;
    entry->source = std::move(source);
    entry->slot = std::move(slot);
  }
  if (use == CallUse::kRead) ++read_count_;
  {
    absl::MutexLock lock(&mutex_);
    entries_.insert(entry);
  }
  // SetLimits() may have looked before it was among them.
  if (!is_counted && limits_ != nullptr && limits_->is_on()) Adopt(*entry);
  Ticket ticket(*this, entry);
  // Tokens and tables may have been read again before EndRevoked() could find the call.
  if (const absl::Status may = authenticator_.StillMay(entry->principal, needs); !may.ok()) {
    absl::MutexLock lock(&entry->mutex);
    entry->is_done = true;  // Admit() tells the audit log.
    return may;
  }
  return ticket;
}

uint64_t Callers::ReadPartBytes() const {
  const uint64_t share = read_data_bytes_ / (2 * std::max<uint64_t>(read_count_, 1));
  return std::clamp(share - share % kMetadataBlockBytes, kPartBytesMin, kPartBytesMax);
}

void Callers::Remove(const std::shared_ptr<Entry>& entry) {
  LimitOf(entry->use).GiveBack(entry->key, entry->cost);
  if (entry->use == CallUse::kRead) --read_count_;
  absl::MutexLock lock(&mutex_);
  entries_.erase(entry);
}

absl::Status Callers::TooMany(CallUse use, const Principal& principal, const CallSource& source,
                              const std::string& key) {
  const FairLimit& limit = LimitOf(use);
  const std::string whose = !principal.name.empty()    ? CallerName(principal)
                            : source.uid().has_value() ? AddressOf(source, principal)
                                                       : std::string("this connection");
  const uint64_t of_all = use == CallUse::kRead ? limit.capacity() / kReadBytes : limit.capacity();
  uint64_t refused = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (refusals_.size() >= kRefusalsMax) refusals_.clear();
    Refusals& refusals = refusals_[StrCat(NameOf(use), " ", key)];
    ++refusals.count;
    if (clock_.Monotonic() - refusals.logged >= kLogEvery) {
      refused = std::exchange(refusals.count, 0);
      refusals.logged = clock_.Monotonic();
    }
  }
  if (refused > 0) {
    spdlog::warn("{} has its share of the {} {}: refused {} since the last such line", whose,
                 of_all, NameOf(use), refused);
  }
  return absl::ResourceExhaustedError(StrCat(whose, " has its share of the server's ", of_all, " ",
                                             NameOf(use), ", ", limit.share_percent(),
                                             "% while nobody else has any: ", WayOut(use)));
}

// A call that is admitted meanwhile is checked by its own thread after it was added.
void Callers::EndRevoked(std::string_view why) { EndThoseRevoked(Running(), why); }

void Callers::LookAgainAt(const std::string& file) {
  if (!authenticator_.asks_owners()) return;
  std::vector<std::shared_ptr<Entry>> running = Running();
  std::erase_if(running, [&](const std::shared_ptr<Entry>& entry) {
    const Needs needs = entry->Needed();
    return std::none_of(needs.begin(), needs.end(),
                        [&](const Need& need) { return need.file == file; });
  });
  EndThoseRevoked(running, StrCat("the owner of ", Quoted(file), " has changed"));
}

bool Callers::Doom(const std::shared_ptr<Entry>& entry) {
  absl::MutexLock lock(&mutex_);
  if (entry->revoked_at.has_value()) return false;
  entry->revoked_at = clock_.Monotonic();
  ending_.push_back(entry);
  return true;
}

void Callers::EndThose(absl::Span<const std::pair<std::shared_ptr<Entry>, absl::Status>> doomed) {
  for (const auto& [entry, status] : doomed) {
    std::function<void(const absl::Status&)> end;
    {
      absl::MutexLock lock(&entry->mutex);
      entry->status = status;
      entry->is_revoked = true;
      end.swap(entry->end);
    }
    if (end) end(status);
  }
}

void Callers::EndInHand(const absl::Status& why) {
  std::vector<std::pair<std::shared_ptr<Entry>, absl::Status>> doomed;
  for (std::shared_ptr<Entry>& entry : Running()) {
    if (entry->is_of_http || entry->use == CallUse::kSession || !Doom(entry)) continue;
    doomed.emplace_back(std::move(entry), why);
  }
  if (!doomed.empty()) {
    spdlog::warn("{} calls go on at the end of stop_timeout, and are ended", doomed.size());
  }
  EndThose(doomed);
}

void Callers::CancelInHand(const absl::Status& why) {
  for (const std::shared_ptr<Entry>& entry : Running()) {
    if (entry->is_of_http) continue;
    absl::MutexLock lock(&entry->mutex);
    if (entry->source == nullptr) continue;
    entry->source->Cancel(entry->status.ok() ? why : entry->status);
  }
}

// Without the lock: where tables name owners, a look may wait for the disk.
void Callers::EndThoseRevoked(absl::Span<const std::shared_ptr<Entry>> entries,
                              std::string_view why) {
  std::vector<std::pair<std::shared_ptr<Entry>, absl::Status>> doomed;
  std::map<std::string, std::pair<int, absl::Status>> counts;  // by caller
  for (const std::shared_ptr<Entry>& entry : entries) {
    absl::Status status = authenticator_.StillMay(entry->principal, entry->Needed());
    if (status.ok()) continue;
    if (absl::IsUnavailable(status)) {
      // A disk or a name service that fails takes nothing from anybody, for now.
      absl::MutexLock lock(&mutex_);
      look_again_at_ = std::min(look_again_at_, clock_.Monotonic() + kLookAgainAfter);
      continue;
    }
    if (!Doom(entry)) continue;
    auto& [count, last] = counts[CallerName(entry->principal)];
    ++count;
    last = status;
    doomed.emplace_back(entry, std::move(status));
  }
  for (const auto& [name, counted] : counts) {
    spdlog::warn("{}: {}: {} sessions and calls end: {}", why, name, counted.first,
                 ToStd(counted.second.message()));
  }
  // Sessions last: else a commit that waits for one of them to make a cut is made when it goes.
  std::stable_partition(doomed.begin(), doomed.end(),
                        [](const auto& each) { return each.first->use != CallUse::kSession; });
  EndThose(doomed);
}

void Callers::OnTimer() {
  std::vector<std::shared_ptr<Entry>> late;
  const absl::Time next_expiry = authenticator_.NextExpiry();
  bool has_expired, must_look_again;
  {
    absl::MutexLock lock(&mutex_);
    must_look_again = clock_.Monotonic() >= look_again_at_;
    if (must_look_again) look_again_at_ = absl::InfiniteDuration();
    has_expired = absl::Now() >= std::exchange(next_expiry_, next_expiry);
  }
  if (has_expired) EndRevoked("expiry");
  if (must_look_again) EndRevoked("looked at again");
  if (authenticator_.users().TakeChange()) EndRevoked("groups of users changed");
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.Monotonic();
    const auto is_early = [&](const auto& entry) { return now - *entry->revoked_at < kEndingMax; };
    const auto split = std::stable_partition(ending_.begin(), ending_.end(), is_early);
    std::move(split, ending_.end(), std::back_inserter(late));
    ending_.erase(split, ending_.end());
  }
  for (const std::shared_ptr<Entry>& entry : late) {
    absl::MutexLock lock(&entry->mutex);
    if (entry->source == nullptr) continue;
    entry->source->Cancel(entry->status.ok() ? absl::CancelledError("the call ends")
                                             : entry->status);
  }
}

}  // namespace h5mirror::server
