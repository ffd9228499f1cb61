#include "client_vfd/session/snapshot_holds.h"

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

// Forks of this process and those that it comes from.
std::atomic<int> fork_count = 0;

struct Roots {
  absl::Mutex mutex;
  std::map<SnapshotHolds::Id, std::weak_ptr<SnapshotHolds>> open ABSL_GUARDED_BY(mutex);
};

// Readers may be closed as late as HDF5's atexit.
Roots& AllRoots() {
  static auto* const roots = new Roots;
  return *roots;
}

}  // namespace

SnapshotHolds::SnapshotHolds(const Id& id, const ReaderServer& server, absl::Duration timeout)
    : id_(id),
      server_(server),
      timeout_(std::min(timeout, kCloseWait)),
      pid_(getpid()),
      fork_count_(fork_count) {}

void SnapshotHolds::PrepareFork() {
  AllRoots().mutex.Lock();
  ++fork_count;
}

void SnapshotHolds::AfterFork() { AllRoots().mutex.Unlock(); }

std::shared_ptr<SnapshotHolds> SnapshotHolds::MakeFor(const ReaderServer& server,
                                                      absl::Duration timeout) {
  return Find(RandomBytes16(), server, timeout);
}

std::shared_ptr<SnapshotHolds> SnapshotHolds::Find(const Id& id, const ReaderServer& server,
                                                   absl::Duration timeout) {
  Roots& roots = AllRoots();
  absl::MutexLock lock(&roots.mutex);
  std::weak_ptr<SnapshotHolds>& known = roots.open[id];
  std::shared_ptr<SnapshotHolds> holds = known.lock();
  if (holds == nullptr) {
    holds = std::shared_ptr<SnapshotHolds>(new SnapshotHolds(id, server, timeout));
    known = holds;
  }
  return holds;
}

SnapshotHolds::~SnapshotHolds() {
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

void SnapshotHolds::Add(const std::string& name, int64_t cut) {
  absl::MutexLock lock(&AllRoots().mutex);
  cuts_.emplace(name, cut);
}

}  // namespace h5mirror::vfd
