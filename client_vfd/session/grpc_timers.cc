#include "client_vfd/session/grpc_timers.h"

// In no header that gRPC installs; grpc_prefork() of its public ones does this only where the
// environment allowed it at the start. Weak, as another release may be without it.
void grpc_timer_manager_set_threading(bool enabled) __attribute__((weak));

namespace h5mirror::vfd {

bool StopGrpcTimers() {
  if (grpc_timer_manager_set_threading == nullptr) return false;
  grpc_timer_manager_set_threading(false);
  return true;
}

}  // namespace h5mirror::vfd
