// Each caller's use of the server, and the [[limits]] tables that bound it.
//
// A caller is an issuer and a name: all its connections count together. One without a name is the
// address that it comes from, or the uid at the other end of a Unix socket. Where there is no
// table, nothing is counted, and is_on() is all that a call pays.
#ifndef H5MIRROR_SERVER_QUOTAS_CALLER_LIMITS_H_
#define H5MIRROR_SERVER_QUOTAS_CALLER_LIMITS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/door/auth.h"
#include "server/door/call_brake.h"
#include "server/settings/limit_rules.h"

namespace h5mirror::server {

enum class LimitKind : uint8_t { kSessions, kStreams, kCalls, kBandwidth };
inline constexpr size_t kLimitKindCount = 4;
// "sessions": the key of a table.
std::string_view NameOf(LimitKind kind);

// How often each limit was reached: by LimitKind. Of kBandwidth: messages after which a stream was
// held back.
using LimitCounts = std::array<uint64_t, kLimitKindCount>;

// One caller's use, and the limits of its table.
struct CallerUse {
  struct Amount {
    uint64_t used = 0;
    std::optional<uint64_t> limit = std::nullopt;
    uint64_t refused = 0;
  };
  std::string key = {};  // orders callers
  std::string issuer = {};
  std::string name = {};
  std::string table = {};  // the source of its rule; empty: none
  std::array<Amount, kLimitKindCount> amounts{};
};

// Thread-safe. Outlives all slots, and the gate that has its brakes.
class CallerLimits {
  struct Account;

 public:
  // `clock` must outlive this.
  explicit CallerLimits(Clock& clock) : clock_(clock) {}

  // The tables from now on. Running calls go on, and count. Slots are kept while there is no table.
  void SetRules(std::vector<LimitRule> rules);
  bool is_on() const { return is_on_.load(std::memory_order_acquire); }

  // A call's place, as long as it lasts. Given back once, when it goes.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : limits_(other.limits_), account_(std::move(other.account_)) {
      use_ = std::exchange(other.use_, std::nullopt);
    }
    Slot& operator=(Slot&& other) noexcept {
      std::swap(limits_, other.limits_);
      std::swap(account_, other.account_);
      std::swap(use_, other.use_);
      return *this;
    }
    ~Slot();

    bool is_there() const { return account_ != nullptr; }
    // Counts bytes that have come. Returns their place in the queue of bytes over the rate.
    uint64_t CountBytes(uint64_t bytes) const;
    // The time until bytes after `place` may be read; 0: now. `is_first`: the stream has just
    // reached that place.
    absl::Duration Until(uint64_t place, bool is_first) const;

   private:
    friend class CallerLimits;
    Slot(CallerLimits& limits, std::shared_ptr<Account> account, std::optional<LimitKind> use)
        : limits_(&limits), account_(std::move(account)), use_(use) {}

    CallerLimits* limits_ = nullptr;
    std::shared_ptr<Account> account_;
    std::optional<LimitKind> use_;  // kSessions or kStreams
  };

  // A call of `method` (a constant). `address`: of a caller without a name. `use`: kSessions or
  // kStreams, if it holds one.
  struct Entrant {
    const Principal& principal;
    std::string address = {};
    const char* method = "";
    std::optional<LimitKind> use = std::nullopt;
  };
  // Errors: kResourceExhausted names the limit, the use, the table and the way out. `brake` is then
  // for CallGate::Brake().
  absl::StatusOr<Slot> Enter(const Entrant& entrant, std::shared_ptr<CallBrake>* brake);
  // Counts a call that runs already, also beyond the limits.
  Slot Adopt(const Entrant& entrant);

  // Of one caller; where nothing is counted, its name alone.
  CallerUse UseOf(const Entrant& entrant);
  // Of all that are counted, in the order of their keys, at most `max`; those after `key`.
  std::vector<CallerUse> UseOfAll(const std::string& key, size_t max);
  // Since the start.
  LimitCounts Counts() const;

 private:
  struct Rules;
  class Brake;

  std::shared_ptr<Account> AccountOf(const Entrant& entrant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the account's rule.
  void Match(Account& account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIdle(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The limit that a call would break; nullopt: none.
  std::optional<LimitKind> Broken(Account& account, std::optional<LimitKind> use)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  struct Refusal {
    absl::Status status = absl::OkStatus();
    std::string log_line = {};  // to be logged without a lock; empty: nothing
  };
  enum class MayLog : uint8_t { kNow, kLater };
  Refusal Refuse(LimitKind kind, Account& account, MayLog may_log = MayLog::kNow)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK: `slot` was set.
  Refusal EnterCounted(const Entrant& entrant, std::shared_ptr<CallBrake>* brake, Slot& slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CallBrake::Answer AskAgain(Account& account, std::string_view method);
  void GiveBack(Account& account, LimitKind kind);
  uint64_t CountBytes(Account& account, uint64_t bytes);
  absl::Duration Until(Account& account, uint64_t place, bool is_first);
  CallerUse Describe(const std::string& key, Account& account)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  std::atomic<bool> is_on_{false};
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Rules> rules_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Account>> accounts_ ABSL_GUARDED_BY(mutex_);
  LimitCounts counts_ ABSL_GUARDED_BY(mutex_){};
  absl::Duration last_forget_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_QUOTAS_CALLER_LIMITS_H_
