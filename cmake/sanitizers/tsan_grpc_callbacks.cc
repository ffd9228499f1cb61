// Tells ThreadSanitizer that a callback of gRPC comes after the operation that it ends was begun.
//
// Debian's libgrpc is not instrumented, and hands an operation from thread to thread by atomics
// that TSan does not see. gRPC's headers are compiled with us: whatever StartWrite() has written
// into an operation, and what our reactor has written before it, looks like a race with the thread
// that runs OnWriteDone(). grpc_call_start_batch() below takes the place of the library's in each
// tsan program. It puts a function of ours before the two by which the headers take a callback. An
// operation on a completion queue ends in the thread that takes its tag from there, with
// grpc_completion_queue_next().

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "grpc/grpc.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

using Functor = grpc_completion_queue_functor;

// CallbackWithSuccessTag::StaticRun() and CallbackWithStatusTag::StaticRun(), private functions of
// grpcpp/support/callback_common.h. Null where a program has no such callback.
extern void RunWithSuccess(Functor* functor, int ok) __asm__(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori")
    __attribute__((weak));
extern void RunWithStatus(Functor* functor, int ok) __asm__(
    "_ZN4grpc8internal21CallbackWithStatusTag9StaticRunEP29grpc_completion_queue_functori")
    __attribute__((weak));

namespace {

template <void (*run)(Functor*, int)>
void AcquireAndRun(Functor* functor, int ok) {
  __tsan_acquire(functor);
  run(functor, ok);
}

// The library's own function of this name.
template <typename Function>
Function* Find(const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_grpc_callbacks.cc: no %s in this gRPC\n", name);
    std::abort();
  }
  return found;
}

}  // namespace

extern "C" grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count,
                                                 void* tag, void* reserved) {
  // Other tags are objects with a virtual function table in its place: no such function.
  auto* const functor = static_cast<Functor*>(tag);
  if (functor != nullptr && functor->functor_run != nullptr) {
    if (functor->functor_run == &RunWithSuccess) {
      functor->functor_run = &AcquireAndRun<&RunWithSuccess>;
    } else if (functor->functor_run == &RunWithStatus) {
      functor->functor_run = &AcquireAndRun<&RunWithStatus>;
    }
    __tsan_release(tag);
  }
  static auto* const next = Find<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  return next(call, ops, count, tag, reserved);
}

extern "C" grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                                 gpr_timespec deadline, void* reserved) {
  static auto* const next =
      Find<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE && event.tag != nullptr) __tsan_acquire(event.tag);
  return event;
}
