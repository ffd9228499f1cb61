// Tells ThreadSanitizer about absl::Mutex, absl::CondVar and absl::Notification.
//
// Debian's libabsl is not instrumented and blocks by futex, so TSan sees none of its locks and
// every variable guarded by one looks like a race. The functions below take the place of the
// library's in each tsan program (gRPC's own calls come here too, which is how TSan learns of the
// order that gRPC gives to our callbacks), tell TSan what happens-before what, and call the
// library's.
//
// An absl::Condition may be evaluated by whichever thread unlocks, while it holds the lock but
// after it told TSan of the release; reads made there are ignored.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

#define H5M_TEXT_OF(x) #x
#define H5M_TEXT(x) H5M_TEXT_OF(x)

// The library's function whose mangled name is absl's inline namespace followed by `rest`.
template <typename Function>
Function* Next(const char* rest, const char* first = "_ZN4absl") {
  const std::string space = H5M_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string name = first + std::to_string(space.size()) + space + rest;
  void* found = dlsym(RTLD_NEXT, name.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_absl_mutex.cc: no %s in this absl\n", name.c_str());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// Calls the library's function; `before` and `after` say whether the lock is given up, or held
// afterwards.
enum class Before { kNotHeld, kReleases };
enum class After { kNotHeld, kAcquires };

template <typename Result, typename... Args>
Result Call(Result (*next)(void*, Args...), Before before, After after, void* self, void* mutex,
            Args... args) {
  if (before == Before::kReleases) __tsan_release(mutex);
  if constexpr (std::is_void_v<Result>) {
    {
      IgnoreReads ignore;
      next(self, args...);
    }
    if (after == After::kAcquires) __tsan_acquire(mutex);
  } else {
    Result result;
    {
      IgnoreReads ignore;
      result = next(self, args...);
    }
    if (after == After::kAcquires) __tsan_acquire(mutex);
    return result;
  }
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

#define H5M_LOCK(function, rest)                                \
  void Mutex::function() {                                      \
    static auto* const next = Next<void(void*)>(rest);          \
    Call(next, Before::kNotHeld, After::kAcquires, this, this); \
  }
#define H5M_UNLOCK(function, rest)                              \
  void Mutex::function() {                                      \
    static auto* const next = Next<void(void*)>(rest);          \
    Call(next, Before::kReleases, After::kNotHeld, this, this); \
  }
#define H5M_TRY(function, rest)                        \
  bool Mutex::function() {                             \
    static auto* const next = Next<bool(void*)>(rest); \
    const bool held = next(this);                      \
    if (held) __tsan_acquire(this);                    \
    return held;                                       \
  }
#define H5M_WHEN(function, rest)                                            \
  void Mutex::function(const Condition& condition) {                        \
    static auto* const next = Next<void(void*, const Condition*)>(rest);    \
    Call(next, Before::kNotHeld, After::kAcquires, this, this, &condition); \
  }
#define H5M_TIMED(function, rest, Limit, before)                                \
  bool Mutex::function(const Condition& condition, Limit limit) {               \
    static auto* const next = Next<bool(void*, const Condition*, Limit)>(rest); \
    return Call(next, before, After::kAcquires, this, this, &condition, limit); \
  }

H5M_LOCK(Lock, "5Mutex4LockEv")
H5M_LOCK(ReaderLock, "5Mutex10ReaderLockEv")
H5M_UNLOCK(Unlock, "5Mutex6UnlockEv")
H5M_UNLOCK(ReaderUnlock, "5Mutex12ReaderUnlockEv")
H5M_TRY(TryLock, "5Mutex7TryLockEv")
H5M_TRY(ReaderTryLock, "5Mutex13ReaderTryLockEv")
H5M_WHEN(LockWhen, "5Mutex8LockWhenERKNS0_9ConditionE")
H5M_WHEN(ReaderLockWhen, "5Mutex14ReaderLockWhenERKNS0_9ConditionE")
H5M_TIMED(LockWhenWithTimeout, "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE",
          Duration, Before::kNotHeld)
H5M_TIMED(LockWhenWithDeadline, "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", Time,
          Before::kNotHeld)
H5M_TIMED(ReaderLockWhenWithTimeout,
          "5Mutex25ReaderLockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE", Duration,
          Before::kNotHeld)
H5M_TIMED(ReaderLockWhenWithDeadline,
          "5Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", Time, Before::kNotHeld)
H5M_TIMED(AwaitWithTimeout, "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE", Duration,
          Before::kReleases)
H5M_TIMED(AwaitWithDeadline, "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE", Time,
          Before::kReleases)

void Mutex::Await(const Condition& condition) {
  static auto* const next = Next<void(void*, const Condition*)>("5Mutex5AwaitERKNS0_9ConditionE");
  Call(next, Before::kReleases, After::kAcquires, this, this, &condition);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const next = Next<void(void*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  Call(next, Before::kReleases, After::kAcquires, this, mutex, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration limit) {
  static auto* const next =
      Next<bool(void*, Mutex*, Duration)>("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Call(next, Before::kReleases, After::kAcquires, this, mutex, mutex, limit);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time limit) {
  static auto* const next =
      Next<bool(void*, Mutex*, Time)>("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return Call(next, Before::kReleases, After::kAcquires, this, mutex, mutex, limit);
}

// A thread that finds it notified takes no lock: the library reads an atomic of its own.
void Notification::Notify() {
  static auto* const next = Next<void(void*)>("12Notification6NotifyEv");
  Call(next, Before::kReleases, After::kNotHeld, this, this);
}

void Notification::WaitForNotification() const {
  static auto* const next =
      Next<void(const void*)>("12Notification19WaitForNotificationEv", "_ZNK4absl");
  next(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const next = Next<bool(const void*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE", "_ZNK4absl");
  const bool notified = next(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const next = Next<bool(const void*, Time)>(
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE", "_ZNK4absl");
  const bool notified = next(this, deadline);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
