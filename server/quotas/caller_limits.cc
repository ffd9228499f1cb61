#include "server/quotas/caller_limits.h"

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "rpc/status.h"
#include "server/quotas/rate_bucket.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// A caller's first refusals in a second, up to this number, are sent at once, so that a client
// slightly over its limit hears of it. The gate holds further ones back.
constexpr uint64_t kPromptRefusals = 10;
constexpr absl::Duration kLogEvery = absl::Seconds(10);
// After so long without a call a caller that holds nothing is forgotten.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);
constexpr absl::Duration kForgetPeriod = absl::Minutes(1);
// Beyond so many, callers without a name that are new count as one.
constexpr size_t kAccountsMax = 65'536;
constexpr char kOthers[] = "other addresses";
// Of a caller: methods that were refused for want of a slot. There are not that many.
constexpr size_t kMethodsMax = 16;

size_t IndexOf(LimitKind kind) { return static_cast<size_t>(kind); }

std::string KeyOf(const CallerLimits::Entrant& entrant) {
  const Principal& principal = entrant.principal;
  return principal.name.empty() ? entrant.address
                                : StrCat(IssuerName(principal.issuer), ":", principal.name);
}

const std::optional<uint64_t>& LimitOf(LimitKind kind, const LimitRule& rule) {
  switch (kind) {
    case LimitKind::kSessions:
      return rule.sessions;
    case LimitKind::kStreams:
      return rule.streams;
    case LimitKind::kCalls:
      return rule.calls;
    case LimitKind::kBandwidth:
      break;
  }
  return rule.bandwidth;
}

std::string_view WayOut(LimitKind kind) {
  switch (kind) {
    case LimitKind::kSessions:
      return "close files, or ask the server's operator for more";
    case LimitKind::kStreams:
      return "end followers or reads, or ask the server's operator for more";
    default:
      return "ask less often, or ask the server's operator for more";
  }
}

}  // namespace

std::string_view NameOf(LimitKind kind) {
  switch (kind) {
    case LimitKind::kSessions:
      return "sessions";
    case LimitKind::kStreams:
      return "streams";
    case LimitKind::kCalls:
      return "calls";
    case LimitKind::kBandwidth:
      return "bandwidth";
  }
  return "?";
}

struct CallerLimits::Rules {
  std::vector<LimitRule> rules;
};

// Guarded by the limits' mutex.
struct CallerLimits::Account {
  std::string issuer;
  std::string name;   // empty: it has none
  std::string shown;  // CallerName()
  std::shared_ptr<const Rules> rules;
  std::vector<std::string> groups;  // that `rule` was found for
  const LimitRule* rule = nullptr;  // of `rules`; null: none
  std::array<uint64_t, 2> slots{};  // kSessions, kStreams
  RateBucket calls;
  RateBucket bytes;
  RateBucket refusals;
  RateMeter calls_meter;
  RateMeter bytes_meter;
  LimitCounts refused{};
  std::vector<std::pair<std::string_view, LimitKind>> refused_methods;  // for want of a slot
  absl::Duration last_call;
  absl::Duration last_log = -absl::InfiniteDuration();
  uint64_t unlogged = 0;

  std::optional<uint64_t> Limit(LimitKind kind) const {
    return rule == nullptr ? std::nullopt : LimitOf(kind, *rule);
  }
};

class CallerLimits::Brake final : public CallBrake {
 public:
  Brake(CallerLimits& limits, std::shared_ptr<Account> account)
      : limits_(limits), account_(std::move(account)) {}
  Answer Ask(std::string_view method) override { return limits_.AskAgain(*account_, method); }

 private:
  CallerLimits& limits_;
  const std::shared_ptr<Account> account_;
};

CallerLimits::Slot::~Slot() {
  if (account_ != nullptr && use_.has_value()) limits_->GiveBack(*account_, *use_);
}

uint64_t CallerLimits::Slot::CountBytes(uint64_t bytes) const {
  return limits_->CountBytes(*account_, bytes);
}

absl::Duration CallerLimits::Slot::Until(uint64_t place, bool is_first) const {
  return limits_->Until(*account_, place, is_first);
}

void CallerLimits::SetRules(std::vector<LimitRule> rules) {
  const bool is_on = !rules.empty();
  auto shared = std::make_shared<const Rules>(Rules{std::move(rules)});
  absl::MutexLock lock(&mutex_);
  rules_ = std::move(shared);
  // Streams that run ask for no table again.
  for (const auto& [key, account] : accounts_) Match(*account);
  is_on_.store(is_on, std::memory_order_release);
}

void CallerLimits::Match(Account& account) {
  account.rules = rules_;
  account.rule = nullptr;
  if (rules_ == nullptr) return;
  const auto& rules = rules_->rules;
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const LimitRule& rule) {
    return rule.callers().Takes(account.name, account.issuer, account.groups);
  });
  if (found != rules.end()) account.rule = &*found;
}

void CallerLimits::ForgetIdle(absl::Duration now) {
  if (now - last_forget_ < kForgetPeriod) return;
  last_forget_ = now;
  for (auto each = accounts_.begin(); each != accounts_.end();) {
    // Held by nothing else: no slot, and no brake.
    const bool is_idle =
        each->second.use_count() == 1 && now - each->second->last_call > kForgetAfter;
    each = is_idle ? accounts_.erase(each) : std::next(each);
  }
}

std::shared_ptr<CallerLimits::Account> CallerLimits::AccountOf(const Entrant& entrant) {
  ForgetIdle(clock_.Monotonic());
  const Principal& principal = entrant.principal;
  std::string key = KeyOf(entrant);
  // Addresses are many, and cost nothing.
  const bool is_crowded = principal.name.empty() && accounts_.size() >= kAccountsMax;
  if (is_crowded && !accounts_.contains(key)) key = kOthers;
  std::shared_ptr<Account>& account = accounts_[key];
  const bool is_new = account == nullptr;
  if (is_new) {
    account = std::make_shared<Account>();
    account->issuer = std::string(IssuerName(principal.issuer));
    account->name = principal.name;
    account->shown =
        principal.name.empty() ? StrCat("the callers from ", key) : CallerName(principal);
  }
  account->last_call = clock_.Monotonic();
  // Groups change.
  if (is_new || account->groups != principal.groups()) {
    account->groups = principal.groups();
    Match(*account);
  }
  return account;
}

std::optional<LimitKind> CallerLimits::Broken(Account& account, std::optional<LimitKind> use) {
  if (use.has_value()) {
    const std::optional<uint64_t> limit = account.Limit(*use);
    if (limit.has_value() && account.slots[IndexOf(*use)] >= *limit) return use;
  }
  const std::optional<uint64_t> calls = account.Limit(LimitKind::kCalls);
  if (calls.has_value() && !account.calls.HasOne(*calls, clock_.Monotonic())) {
    return LimitKind::kCalls;
  }
  return std::nullopt;
}

CallerLimits::Refusal CallerLimits::Refuse(LimitKind kind, Account& account, MayLog may_log) {
  Refusal refusal;
  ++counts_[IndexOf(kind)];
  ++account.refused[IndexOf(kind)];
  ++account.unlogged;
  const absl::Duration now = clock_.Monotonic();
  const std::string_view what = kind == LimitKind::kCalls ? rpc::kCallsASecond : NameOf(kind);
  const uint64_t limit = account.Limit(kind).value_or(0);
  if (may_log == MayLog::kNow && now - account.last_log >= kLogEvery) {
    refusal.log_line =
        StrCat(account.shown, " is over its limit of ", limit, " ", what, " (",
               account.rule->source, "): refused ", account.unlogged, " since the last such line");
    account.unlogged = 0;
    account.last_log = now;
  }
  const std::string used =
      kind == LimitKind::kCalls ? "" : StrCat(" and has ", account.slots[IndexOf(kind)]);
  refusal.status = absl::ResourceExhaustedError(
      StrCat(account.shown, " may have ", limit, " ", what, used, ", by the [[limits]] table at ",
             account.rule->source, " of the server: ", WayOut(kind)));
  return refusal;
}

absl::StatusOr<CallerLimits::Slot> CallerLimits::Enter(const Entrant& entrant,
                                                       std::shared_ptr<CallBrake>* brake) {
  Refusal refusal;
  Slot slot;
  {
    absl::MutexLock lock(&mutex_);
    refusal = EnterCounted(entrant, brake, slot);
  }
  if (!refusal.log_line.empty()) spdlog::warn("{}", refusal.log_line);
  if (!refusal.status.ok()) return refusal.status;
  return slot;
}

CallerLimits::Refusal CallerLimits::EnterCounted(const Entrant& entrant,
                                                 std::shared_ptr<CallBrake>* brake, Slot& slot) {
  std::shared_ptr<Account> account = AccountOf(entrant);
  const absl::Duration now = clock_.Monotonic();
  if (const auto broken = Broken(*account, entrant.use); broken.has_value()) {
    auto& methods = account->refused_methods;
    const std::pair<std::string_view, LimitKind> refused(entrant.method, *broken);
    if (*broken != LimitKind::kCalls && methods.size() < kMethodsMax &&
        std::find(methods.begin(), methods.end(), refused) == methods.end()) {
      methods.push_back(refused);
    }
    if (account->refusals.HasOne(kPromptRefusals, now)) account->refusals.TakeOne();
    *brake = std::make_shared<Brake>(*this, account);
    return Refuse(*broken, *account);
  }
  if (account->Limit(LimitKind::kCalls).has_value()) account->calls.TakeOne();
  account->calls_meter.Add(1, now);
  if (entrant.use.has_value()) ++account->slots[IndexOf(*entrant.use)];
  slot = Slot(*this, std::move(account), entrant.use);
  return {};
}

CallerLimits::Slot CallerLimits::Adopt(const Entrant& entrant) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Account> account = AccountOf(entrant);
  if (entrant.use.has_value()) ++account->slots[IndexOf(*entrant.use)];
  return Slot(*this, std::move(account), entrant.use);
}

CallBrake::Answer CallerLimits::AskAgain(Account& account, std::string_view method) {
  absl::MutexLock lock(&mutex_);
  std::optional<LimitKind> use;
  for (const auto& [name, kind] : account.refused_methods) {
    if (name == method) use = kind;
  }
  const std::optional<LimitKind> broken = Broken(account, use);
  if (!broken.has_value()) return {};
  account.last_call = clock_.Monotonic();
  const bool is_prompt = account.refusals.HasOne(kPromptRefusals, account.last_call);
  if (is_prompt) account.refusals.TakeOne();
  // The gate's lock is held: the next refusal behind the gate is logged.
  Refusal refusal = Refuse(*broken, account, MayLog::kLater);
  return {std::move(refusal.status), !is_prompt};
}

void CallerLimits::GiveBack(Account& account, LimitKind kind) {
  absl::MutexLock lock(&mutex_);
  --account.slots[IndexOf(kind)];
  account.last_call = clock_.Monotonic();
}

uint64_t CallerLimits::CountBytes(Account& account, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_.Monotonic();
  account.bytes_meter.Add(bytes, now);
  const std::optional<uint64_t> rate = account.Limit(LimitKind::kBandwidth);
  return rate.has_value() ? account.bytes.TakeAhead(*rate, bytes, now) : 0;
}

absl::Duration CallerLimits::Until(Account& account, uint64_t place, bool is_first) {
  absl::MutexLock lock(&mutex_);
  const std::optional<uint64_t> rate = account.Limit(LimitKind::kBandwidth);
  if (!rate.has_value() || place == 0) return absl::ZeroDuration();
  const absl::Duration wait = account.bytes.Until(place, *rate, clock_.Monotonic());
  if (wait > absl::ZeroDuration() && is_first) {
    ++counts_[IndexOf(LimitKind::kBandwidth)];
    ++account.refused[IndexOf(LimitKind::kBandwidth)];
  }
  return wait;
}

CallerUse CallerLimits::Describe(const std::string& key, Account& account) {
  const absl::Duration now = clock_.Monotonic();
  CallerUse use{
      .key = key, .issuer = account.issuer, .name = account.name.empty() ? key : account.name};
  if (account.rule != nullptr) use.table = account.rule->source;
  const std::array<uint64_t, kLimitKindCount> used = {account.slots[0], account.slots[1],
                                                      account.calls_meter.LastSecond(now),
                                                      account.bytes_meter.LastSecond(now)};
  for (size_t i = 0; i < kLimitKindCount; ++i) {
    use.amounts[i] = {used[i], account.Limit(static_cast<LimitKind>(i)), account.refused[i]};
  }
  return use;
}

CallerUse CallerLimits::UseOf(const Entrant& entrant) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Account> account = AccountOf(entrant);
  return Describe(KeyOf(entrant), *account);
}

std::vector<CallerUse> CallerLimits::UseOfAll(const std::string& key, size_t max) {
  std::vector<CallerUse> all;
  absl::MutexLock lock(&mutex_);
  for (auto each = accounts_.upper_bound(key); each != accounts_.end() && all.size() < max;
       ++each) {
    all.push_back(Describe(each->first, *each->second));
  }
  return all;
}

LimitCounts CallerLimits::Counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace h5mirror::server
