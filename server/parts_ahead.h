// The parts of an answer, each read while the one before it is sent.
#ifndef H5MIRROR_SERVER_PARTS_AHEAD_H_
#define H5MIRROR_SERVER_PARTS_AHEAD_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "h5mirror/v1/versions.pb.h"
#include "server/worker_pool.h"

namespace h5mirror::server {

// For one thread, that of the call. No thread of the pool waits here, whatever the caller of the
// call does: a part is read once, and the next is asked for when that one is taken.
class PartsAhead {
 public:
  // Makes its argument, which may still hold an older part, the next part; false: there is none.
  // Called by one thread at a time, and not again after false or an error.
  using Read = std::function<absl::StatusOr<bool>(v1::ReadVersionResponse&)>;

  PartsAhead(WorkerPool& pool, Read read);
  // Waits for a read that is under way.
  ~PartsAhead();
  PartsAhead(const PartsAhead&) = delete;
  PartsAhead& operator=(const PartsAhead&) = delete;

  // Exchanges `part` for the next; false: there is none. Reads itself where the pool has not come
  // to it.
  absl::StatusOr<bool> Next(v1::ReadVersionResponse& part);

 private:
  enum class Stage { kIdle, kQueued, kReading, kRead };
  // What a task of the pool may outlive its call with.
  struct State {
    explicit State(Read read) : read(std::move(read)) {}
    bool IsSettled() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return stage != Stage::kReading; }

    const Read read;
    absl::Mutex mutex;
    Stage stage ABSL_GUARDED_BY(mutex) = Stage::kIdle;
    // Of who reads, in kReading; else of the call's thread.
    v1::ReadVersionResponse part;
    absl::StatusOr<bool> more = false;
  };

  static void ReadQueued(State& state);

  WorkerPool& pool_;
  const std::shared_ptr<State> state_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_PARTS_AHEAD_H_
