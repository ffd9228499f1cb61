#include "server/door/receive_windows.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/match.h"
#include "grpcpp/grpcpp.h"

namespace h5mirror::server {
namespace {

// The hook is not part of gRPC's interface. It has this form in versions that begin with this text.
constexpr char kVersionWithHook[] = "1.51.";
// grpc_core::chttp2::g_test_only_transport_target_window_estimates_mocker, a pointer to an object
// with the virtual functions of WindowHook.
constexpr char kHookSymbol[] =
    "_ZN9grpc_core6chttp252g_test_only_transport_target_window_estimates_mockerE";

class WindowHook {
 public:
  virtual ~WindowHook() = default;
  virtual double NextWindow(double now_bytes) = 0;
};

class SharedWindows final : public WindowHook {
 public:
  double NextWindow(double now_bytes) override {
    return NextWindowBytes(static_cast<uint32_t>(now_bytes), budget_bytes_, session_count_);
  }

  std::atomic<uint64_t> budget_bytes_{0};
  std::atomic<int> session_count_{0};
};

// Never destroyed: gRPC's threads outlive main().
SharedWindows& Shared() {
  static auto* shared = new SharedWindows;
  return *shared;
}

}  // namespace

uint32_t NextWindowBytes(uint32_t now_bytes, uint64_t budget_bytes, int session_count) {
  const uint64_t share =
      std::clamp<uint64_t>(budget_bytes / static_cast<uint64_t>(std::max(session_count, 1)),
                           kWindowBytesMin, kWindowBytesMax);
  const uint64_t grown =
      now_bytes < kFirstWindowBytes ? kFirstWindowBytes : uint64_t{now_bytes} * 2;
  return static_cast<uint32_t>(std::min(grown, share));
}

bool BoundProbedWindows(uint64_t budget_bytes) {
  if (!absl::StartsWith(grpc::Version(), kVersionWithHook)) return false;
  auto** hook = static_cast<WindowHook**>(dlsym(RTLD_DEFAULT, kHookSymbol));
  if (hook == nullptr) return false;
  Shared().budget_bytes_ = budget_bytes;
  *hook = &Shared();
  return true;
}

void ShareProbedWindows(int session_count) { Shared().session_count_ = session_count; }

}  // namespace h5mirror::server
