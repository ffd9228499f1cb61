// Who has calls under way, how many each may have, and the end of those whose token goes.
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
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "grpcpp/grpcpp.h"
#include "server/calls/fair_limit.h"
#include "server/door/auth.h"

namespace h5mirror::server {

// What a call holds for as long as it lasts. Each has a limit of its own.
enum class CallUse : uint8_t {
  kSession,  // a writer's stream; max_sessions of them
  kRead,     // a stream of bytes, counted in the bytes that it may make the server hold
  kWait,     // a call that waits for something to happen to a file
  kFollow,   // a follower
  kThread,   // a thread of the short calls
};

// How much there is of each.
struct CallCapacity {
  uint64_t sessions = 1024;
  uint64_t read_bytes = 0;
  uint64_t read_data_bytes = 0;  // in messages that are larger than they must be
  uint64_t waits = 0;
  uint64_t follows = 0;
  uint64_t threads = 0;
  int share_percent = 50;  // the setting caller_share

  // What `memory_max_bytes` has room for; `threads`: those of the short calls.
  static CallCapacity Of(uint64_t memory_max_bytes, int max_sessions, int threads,
                         int share_percent);
};

// A read counts for two of the smallest messages, and a long request for what it may become in
// memory.
uint64_t ReadCost(uint64_t request_bytes);

// Thread-safe. Outlives all tickets.
class Callers {
  struct Entry;

 public:
  // `authenticator` and `clock` must outlive it.
  Callers(const Authenticator& authenticator, Clock& clock, CallCapacity capacity);
  ~Callers();

  // One admitted call. Destroyed before the call's context is: gives back what the call held.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept = default;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Of a ticket that Admit() gave.
    const Principal& principal() const;
    // Whose share the call counts against: the token's name; without tokens the connection.
    const std::string& key() const;
    // Not OK: the token has gone, or lost the right; the call is to end with that.
    absl::Status revoked() const;
    // `end` is called with that status when it comes, once, by the thread that reads the tokens
    // again; at once, by this one, where it has come already. It must not wait, and may come when
    // the ticket has just gone.
    void OnRevoke(std::function<void(const absl::Status&)> end);

   private:
    friend class Callers;
    Ticket(Callers& callers, std::shared_ptr<Entry> entry)
        : callers_(&callers), entry_(std::move(entry)) {}
    void Release();

    Callers* callers_ = nullptr;
    std::shared_ptr<Entry> entry_;
  };

  // Whether the caller may: `right`, or nullopt: any caller.
  // Errors: kUnauthenticated, kPermissionDenied; kResourceExhausted its share of `use` is taken.
  absl::StatusOr<Ticket> Admit(const grpc::ServerContextBase& context, std::optional<Right> right,
                               CallUse use, uint64_t cost = 1);

  // After the tokens were read again: ends the calls of those that are no more, and of those that
  // lost the right. Logs how many, by token.
  void EndRevoked();
  // Every fraction of a second: cancels calls that were to end and could not, as nobody reads them.
  void OnTimer();

  // What one message of a read may have: 512 KiB, and less, down to 64 KiB, when many read. Each
  // has two at most, the one on its way and the next.
  uint64_t ReadPartBytes() const;

 private:
  FairLimit& LimitOf(CallUse use);
  absl::Status TooMany(CallUse use, const std::string& key);
  void Remove(const std::shared_ptr<Entry>& entry);

  const Authenticator& authenticator_;
  Clock& clock_;
  const bool has_tokens_;
  const uint64_t read_data_bytes_;
  FairLimit sessions_;
  FairLimit read_bytes_;
  FairLimit waits_;
  FairLimit follows_;
  FairLimit threads_;
  std::atomic<uint64_t> read_count_ = 0;

  // What was refused since it was last logged.
  struct Refusals {
    uint64_t count = 0;
    absl::Duration logged = -absl::InfiniteDuration();
  };

  absl::Mutex mutex_;
  std::set<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Entry>> ending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Refusals> refusals_ ABSL_GUARDED_BY(mutex_);  // by key and use
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_CALLERS_H_
