// Decides whether this server may answer for a cell now (docs/design/049-cells.md, "The guard").
#ifndef H5MIRROR_CLUSTER_ACK_GUARD_H_
#define H5MIRROR_CLUSTER_ACK_GUARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror::cluster {

// Open while the last beat that succeeded was sent less than `valid_for` ago, and while a cell is
// this server's. Closed for good by Close().
//
// Thread-safe.
class AckGuard {
 public:
  // Asks the registry whether this server is still up; may block. Errors as Member::Confirm().
  using Ask = std::function<absl::Status()>;

  // `clock` must outlive this, and must go on while the machine is suspended.
  AckGuard(Clock& clock, absl::Duration valid_for, Ask ask);
  AckGuard(const AckGuard&) = delete;

  // ---- Before an answer, for callers from any thread ----

  // OK: this server owns `cell` at `epoch`, as far as memory tells. Read the bytes of the answer
  // first, then call this. Never waits.
  // Errors: kFailedPrecondition  the cell is not this server's at that epoch.
  //         kUnavailable         the last beat is too long ago; it may be right later.
  //         kInternal            closed for good.
  absl::Status Check(std::string_view cell, uint64_t epoch) const;

  // As Check(), after a read of the registry that began after this call did. Call it after each
  // sync, before the ack. Callers that come during a read share the next one. Errors as Check();
  // kUnavailable also where the registry does not answer.
  absl::Status BeforeAck(std::string_view cell, uint64_t epoch);

  // ---- For the member and the node ----

  // A beat succeeded that was sent at `sent_at` of the clock's Monotonic(), before the call that
  // sent it. An older one changes nothing.
  void Renew(absl::Duration sent_at);
  // The first reason stays; it is made kInternal.
  void Close(const absl::Status& why);
  void Add(const std::string& cell, uint64_t epoch);
  void Drop(const std::string& cell);

  // True: Check() passes for cells of this server.
  bool is_open() const;
  // The time since the last successful beat was sent; InfiniteDuration: none was.
  absl::Duration BeatAge() const;

 private:
  absl::Status CheckTime() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The result of a read that began after the call.
  absl::Status AskAnew() ABSL_LOCKS_EXCLUDED(mutex_);

  Clock& clock_;
  const absl::Duration valid_for_;
  const Ask ask_;

  mutable absl::Mutex mutex_;
  absl::Duration valid_until_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);                                  // OK: not closed
  std::map<std::string, uint64_t, std::less<>> epochs_ ABSL_GUARDED_BY(mutex_);  // by cell

  // Reads of the registry, one at a time.
  bool is_asking_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status answer_ ABSL_GUARDED_BY(mutex_);  // of read number `ended_`
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_ACK_GUARD_H_
