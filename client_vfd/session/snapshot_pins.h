// The cuts that a root pins on its server: its own, and those of the files that it leads to.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_SNAPSHOT_PINS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_SNAPSHOT_PINS_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_vfd/session/reader_server.h"

namespace h5mirror::vfd {

// The readers of the root share this; the last one ends the pins. Thread-safe.
class SnapshotPins {
 public:
  using Id = std::array<uint8_t, 16>;

  // For a new root, or for the root `id` of an open reader. If that root was closed, a new one
  // under its id.
  static std::shared_ptr<SnapshotPins> MakeFor(const ReaderServer& server, absl::Duration timeout);
  static std::shared_ptr<SnapshotPins> Find(const Id& id, const ReaderServer& server,
                                            absl::Duration timeout);
  // Tells the server, and waits a moment for the answer. After a fork neither parent nor child
  // tells it, as the other may read on; the server's pins end by themselves.
  ~SnapshotPins();
  SnapshotPins(const SnapshotPins&) = delete;

  // pthread_atfork, outside of ReaderCalls'. The mutex of all roots is held from PrepareFork() to
  // AfterFork(), in parent and child.
  static void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const Id& id() const { return id_; }
  std::string reader_id() const { return {id_.begin(), id_.end()}; }
  void Add(const std::string& name, int64_t cut);

 private:
  SnapshotPins(const Id& id, const ReaderServer& server, absl::Duration timeout);

  const Id id_;
  const ReaderServer server_;
  const absl::Duration timeout_;
  const pid_t pid_;
  const int fork_count_;                            // when it was made
  std::set<std::pair<std::string, int64_t>> cuts_;  // guarded by the mutex of all roots
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_SNAPSHOT_PINS_H_
