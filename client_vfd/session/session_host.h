// What a session has of the process that it lives in: time, waiting, randomness, streams, and the
// other sessions. In a program that is the Engine; in tests/sim/ a simulation.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_SESSION_HOST_H_
#define H5MIRROR_CLIENT_VFD_SESSION_SESSION_HOST_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/hex.h"
#include "client_vfd/session/file_reader.h"
#include "client_vfd/session/frame_pool.h"
#include "client_vfd/session/outside_change.h"
#include "client_vfd/session/stream.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

class Session;

// Thread-safe, but for what is the sender thread's. Lock order: a session's mutex before the
// host's; the host calls sessions with none held.
class SessionHost {
 public:
  virtual ~SessionHost() = default;

  // For deadlines; only goes forward (base/steady_time.h).
  virtual absl::Time Now() = 0;
  // For people and for the history; may jump.
  virtual absl::Time TimeOfDay() = 0;
  // Never the same twice.
  virtual Bytes16 RandomId() = 0;
  // Lets go of `mutex` until `condition` holds, which is looked at with it held, or until
  // `deadline` by Now(); may return early. The sessions' timer has the condition looked at.
  virtual void Await(absl::Mutex& mutex, absl::FunctionRef<bool()> condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // Keeps the session until it is done.
  virtual void Add(std::shared_ptr<Session> session) = 0;
  // Has the sender thread look at the session soon. Any thread, cheap when it is awake already.
  virtual void Wake(Session* session) = 0;
  // The newest session of the same file that has not ended yet and was not followed by another;
  // null if there is none.
  virtual std::shared_ptr<Session> Predecessor(const Session& session) = 0;
  // `ended` has given its lease back, or will never have one: the next session of its file may go.
  virtual void WakeSuccessors(const Session& ended) = 0;

  virtual FramePool& pool() = 0;
  // Each of a file's mirrors has its own: that one server is away is nothing to the others'
  // sessions. `server`: rpc::ClientOptions::target.
  // Copies of overwritten bytes in all sessions with the server.
  virtual std::atomic<int64_t>& saved_bytes(const std::string& server) = 0;
  // True for a while after the server did not answer this process in time: waits are short then,
  // so that 200 files do not wait 200 times.
  virtual bool Suspect(const std::string& server) = 0;
  virtual void SetSuspect(const std::string& server, bool suspect) = 0;

  // For the program's thread, with no session's mutex held. As FindOutsideChange(): waits at most
  // `timeout` without an answer, and reads `file` for at most `time_max`. kUnimplemented: all of
  // the file is sent instead.
  virtual absl::StatusOr<OutsideChange> FindOutsideChange(
      const rpc::ClientOptions& /*server*/, const std::string& /*name*/, int64_t /*cut*/,
      const FileReader& /*file*/, absl::Duration /*timeout*/, absl::Duration /*time_max*/) {
    return absl::UnimplementedError("no digests");
  }

  // For the sender thread. Begins a stream to the server; the host keeps it until it has ended.
  // `owner` must outlive it or be taken away by Abandon().
  virtual Stream* StartStream(const rpc::ClientOptions& options, StreamOwner* owner) = 0;
  // The next StartStream() connects afresh, without gRPC's back-off.
  virtual void DropChannel(const rpc::ClientOptions& options) = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_SESSION_HOST_H_
