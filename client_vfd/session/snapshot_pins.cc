#include "client_vfd/session/snapshot_pins.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/random.h"
#include "client_vfd/session/reader_calls.h"

namespace h5mirror::vfd {
namespace {

// A close is not worth more: the server lets go of the cut by itself.
constexpr absl::Duration kCloseWait = absl::Milliseconds(300);

// The number of forks from the first process down to this one.
std::atomic<int> fork_count = 0;

struct Roots {
  absl::Mutex mutex;
  std::map<SnapshotPins::Id, std::weak_ptr<SnapshotPins>> open ABSL_GUARDED_BY(mutex);
};

// Readers may be closed as late as HDF5's atexit.
Roots& AllRoots() {
  static auto* const roots = new Roots;
  return *roots;
}

}  // namespace

SnapshotPins::SnapshotPins(const Id& id, const ReaderServer& server, absl::Duration timeout)
    : id_(id),
      server_(server),
      timeout_(std::min(timeout, kCloseWait)),
      pid_(getpid()),
      fork_count_(fork_count) {}

void SnapshotPins::PrepareFork() {
  AllRoots().mutex.Lock();
  ++fork_count;
}

void SnapshotPins::AfterFork() { AllRoots().mutex.Unlock(); }

std::shared_ptr<SnapshotPins> SnapshotPins::MakeFor(const ReaderServer& server,
                                                    absl::Duration timeout) {
  return Find(RandomBytes16(), server, timeout);
}

std::shared_ptr<SnapshotPins> SnapshotPins::Find(const Id& id, const ReaderServer& server,
                                                 absl::Duration timeout) {
  Roots& roots = AllRoots();
  absl::MutexLock lock(&roots.mutex);
  std::weak_ptr<SnapshotPins>& known = roots.open[id];
  std::shared_ptr<SnapshotPins> pins = known.lock();
  if (pins == nullptr) {
    pins = std::shared_ptr<SnapshotPins>(new SnapshotPins(id, server, timeout));
    known = pins;
  }
  return pins;
}

SnapshotPins::~SnapshotPins() {
  {
    Roots& roots = AllRoots();
    absl::MutexLock lock(&roots.mutex);
    const auto self = roots.open.find(id_);
    if (self != roots.open.end() && self->second.expired()) roots.open.erase(self);
  }
  if (getpid() != pid_ || fork_count != fork_count_) return;
  for (const auto& [name, cut] : cuts_) {
    v1::CloseSnapshotRequest request;
    request.set_name(name);
    request.set_cut(cut);
    request.set_reader_id(reader_id());
    // Where the server is away there is nobody to tell.
    if (!ReaderCalls::Get().CloseSnapshot(server_, request, timeout_).ok()) return;
  }
}

void SnapshotPins::Add(const std::string& name, int64_t cut) {
  absl::MutexLock lock(&AllRoots().mutex);
  cuts_.emplace(name, cut);
}

}  // namespace h5mirror::vfd
