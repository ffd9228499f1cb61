// The callers: how many calls each may have in flight, and the end of calls whose token is removed.
#ifndef H5MIRROR_SERVER_CALLS_CALLERS_H_
#define H5MIRROR_SERVER_CALLS_CALLERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "grpcpp/grpcpp.h"
#include "server/calls/audit_log.h"
#include "server/calls/call_source.h"
#include "server/calls/fair_limit.h"
#include "server/door/auth.h"
#include "server/quotas/caller_limits.h"

namespace h5mirror::server {

// The resource that a call holds as long as it lasts. Each has a limit of its own.
enum class CallUse : uint8_t {
  kSession,  // a writer's stream; max_sessions of them
  kRead,     // a stream of bytes, counted in the bytes that the server may have to hold for it
  kWait,     // a call that waits for an event of a file
  kFollow,   // a follower
  kThread,   // a thread of the short calls
};

// The capacity of each.
struct CallCapacity {
  uint64_t sessions = 1024;
  uint64_t read_bytes = 0;
  uint64_t read_data_bytes = 0;  // for messages above the smallest size
  uint64_t waits = 0;
  uint64_t follows = 0;
  uint64_t threads = 0;
  int share_percent = 50;  // the setting caller_share

  // The capacity that `memory_max_bytes` allows; `threads`: those of the short calls.
  static CallCapacity Of(uint64_t memory_max_bytes, int max_sessions, int threads,
                         int share_percent);
};

// The cost of a read: two of the smallest messages, and for a long request its size in memory.
uint64_t ReadCost(uint64_t request_bytes);

// A check that a worker makes later, because it may wait for the disk. The worker calls `before`
// before it looks the file up, and `after` afterwards. The look-up waits for a move in progress, so
// it may find another file than the checked one.
struct LateCheck {
  std::function<absl::Status()> before = nullptr;  // null: nothing was left
  std::function<absl::Status()> after = nullptr;
};

// Thread-safe. Outlives all tickets.
class Callers {
  struct Entry;

 public:
  // `authenticator`, `clock` and `audit` must outlive this. `audit` hears of each call that is
  // refused or done; nullptr: no audit log. `limits` bounds each caller; nullptr: no bounds.
  Callers(const Authenticator& authenticator, Clock& clock, CallCapacity capacity,
          AuditLog* audit = nullptr, CallerLimits* limits = nullptr);
  ~Callers();

  // One admitted call. Its destructor gives the call's share back. To be destroyed before what
  // the call's source refers to.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept = default;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Only for a ticket of Admit().
    const Principal& principal() const;
    // Checks one more need of the call, which is looked at again as those of Admit(). Errors: as
    // Authenticator::StillMay().
    absl::Status Require(Need need) const;
    // Require() for later. The ticket may have gone by then.
    LateCheck RequireLater(Need need) const;
    // For a call that may last for days: tells the audit log that it has begun. `claimed`: the
    // client's own account of itself, if it gives one.
    void Began(std::string claimed = "") const;
    // The call has ended, or is about to. Tells the audit log, once. A ticket destroyed without
    // Done() counts as a call whose client has gone. `http_status`: of the answer; 0: not by HTTP.
    void Done(const absl::Status& status, const CallBytes& bytes = {}, int http_status = 0) const;
    // The key of the share that the call counts against: the caller's name; of a caller without
    // one, the user at the other end of its Unix socket, else the connection.
    const std::string& key() const;
    // Counts bytes that came from a writer. Returns their place in the queue of bytes beyond the
    // caller's bandwidth; 0: the caller has no such limit.
    uint64_t CountBytes(uint64_t bytes) const;
    // The time until the bytes after `place` may be read; 0: now. `is_first`: the first question
    // for this place.
    absl::Duration ReadAfter(uint64_t place, bool is_first) const;
    // Not OK: the token was removed, or has lost the right. The call must end with this status.
    absl::Status revoked() const;
    // `end` is called once, with that status, by the thread that reads the tokens again; or at
    // once, by this one, if the status is there already. `end` must not wait, and may be called
    // when the ticket has just been destroyed.
    void OnRevoke(std::function<void(const absl::Status&)> end);

   private:
    friend class Callers;
    Ticket(Callers& callers, std::shared_ptr<Entry> entry)
        : callers_(&callers), entry_(std::move(entry)) {}
    void Release();
    AuditRecord Record(AuditRecord::Event event) const;

    Callers* callers_ = nullptr;
    std::shared_ptr<Entry> entry_;
  };

  // Admits a call of `method` ("ReadVersion"; a constant) that has `needs` (none: any caller).
  // Errors: those of Authenticator::Authenticate() and Check();
  //         kResourceExhausted  the caller's share of `use` is taken, or it is over its limits.
  absl::StatusOr<Ticket> Admit(std::shared_ptr<const CallSource> source, const char* method,
                               Needs needs, CallUse use, uint64_t cost = 1);
  absl::StatusOr<Ticket> Admit(const grpc::ServerContextBase& context, const char* method,
                               Needs needs, CallUse use, uint64_t cost = 1) {
    return Admit(std::make_shared<GrpcCallSource>(context), method, std::move(needs), use, cost);
  }

  // To be called after tokens or tables were read again. Ends the calls of callers that have lost
  // a right that the call needs. Logs how many, by caller, after `why`.
  void EndRevoked(std::string_view why = "reload");
  // Call when the name `file` has got another file or owner, or none. Ends those calls that name it
  // and whose callers no longer have the right.
  void LookAgainAt(const std::string& file);
  // The calls of gRPC that have a ticket.
  size_t InHand();
  // The server stops, and waits no longer for these: ends them with `why`. Not sessions, which know
  // of the stop. OnTimer() cancels those that do not end by it.
  void EndInHand(const absl::Status& why);
  // Cancels all of them at once, sessions too. A client hears of `why`, unless its call was ended
  // for another reason before.
  void CancelInHand(const absl::Status& why);
  // The [[limits]] tables from now on. Running calls are counted, and go on.
  void SetLimits(std::vector<LimitRule> rules);
  // To be called several times a second. Ends calls whose token has expired. Cancels calls that
  // should have ended, but whose client does not read.
  void OnTimer();

  // The size of one message of a read: 512 KiB, or less, down to 64 KiB, when there are many reads.
  // Each read has at most two messages: the one in flight and the next.
  uint64_t ReadPartBytes() const;

 private:
  absl::StatusOr<Ticket> AdmitKnown(std::shared_ptr<const CallSource> source, const char* method,
                                    const Principal& principal, const Needs& needs, CallUse use,
                                    uint64_t cost);
  absl::StatusOr<CallerLimits::Slot> EnterLimits(const CallSource& source, const char* method,
                                                 const Principal& principal, CallUse use);
  // Counts a call that began while nothing was counted.
  void Adopt(Entry& entry);
  static absl::Status RequireFor(const Callers& callers, Entry& entry, const Need& need);
  // Ends those of `entries` whose callers no longer have the right.
  void EndThoseRevoked(absl::Span<const std::shared_ptr<Entry>> entries, std::string_view why);
  std::vector<std::shared_ptr<Entry>> Running();
  // Has OnTimer() cancel the call some time later. False: another thread was first.
  bool Doom(const std::shared_ptr<Entry>& entry);
  // Ends calls that are doomed.
  static void EndThose(absl::Span<const std::pair<std::shared_ptr<Entry>, absl::Status>> doomed);
  FairLimit& LimitOf(CallUse use);
  absl::Status TooMany(CallUse use, const Principal& principal, const CallSource& source,
                       const std::string& key);
  void Remove(const std::shared_ptr<Entry>& entry);

  const Authenticator& authenticator_;
  Clock& clock_;
  AuditLog* const audit_;
  CallerLimits* const limits_;
  const uint64_t read_data_bytes_;
  FairLimit sessions_;
  FairLimit read_bytes_;
  FairLimit waits_;
  FairLimit follows_;
  FairLimit threads_;
  std::atomic<uint64_t> read_count_ = 0;

  // Refusals since the last log line.
  struct Refusals {
    uint64_t count = 0;
    absl::Duration logged = -absl::InfiniteDuration();
  };

  absl::Mutex mutex_;
  std::set<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Entry>> ending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Refusals> refusals_ ABSL_GUARDED_BY(mutex_);         // by key and use
  absl::Time next_expiry_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // of a token
  // When all running calls are checked again, because a right of some could not be looked up.
  absl::Duration look_again_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_CALLERS_H_
