// A session's access to its process: time, waiting, randomness, streams, and the other sessions. In
// a program this is the Engine, in tests/sim/ a simulation.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_SESSION_HOST_H_
#define H5MIRROR_CLIENT_VFD_SESSION_SESSION_HOST_H_

#include <atomic>
#include <cstdint>
#include <functional>
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

// A server's answer to the question whether it serves a file.
struct ServerAnswer {
  absl::Status status;       // OK, or the error as it came
  std::string peer;          // the address that was asked, as gRPC writes it; empty: unknown
  uint64_t lease_token = 0;  // of the stream that the file's writer has there; 0: there is none
  std::string file_id;       // of the file there; empty: unknown
};

// Thread-safe, but for the calls of the sender thread. Lock order: a session's mutex before the
// host's. The host calls sessions with none held.
class SessionHost {
 public:
  virtual ~SessionHost() = default;

  // For deadlines; only goes forward (base/steady_time.h).
  virtual absl::Time Now() = 0;
  // For people and for the history; may jump.
  virtual absl::Time TimeOfDay() = 0;
  // Never the same twice.
  virtual Bytes16 RandomId() = 0;
  // Lets go of `mutex` until `condition` holds, which is evaluated with `mutex` held, or until
  // `deadline` by Now(). May return early. The sessions' timer has the condition evaluated.
  virtual void Await(absl::Mutex& mutex, absl::FunctionRef<bool()> condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // Owns the session until it is done and its stream has ended.
  virtual void Add(std::shared_ptr<Session> session) = 0;
  // Wakes the sender thread for this session. Any thread may call it; cheap if the thread is awake.
  virtual void Wake(Session* session) = 0;
  // The newest session of the same file that has not ended and was not superseded; null: none.
  virtual std::shared_ptr<Session> Predecessor(const Session& session) = 0;
  // Wakes the other sessions of the file of `ended`. That session has given its lease back, or will
  // never get one.
  virtual void WakeSuccessors(const Session& ended) = 0;

  virtual FramePool& pool() = 0;
  // The bytes of the copies (CutQueue::saved_bytes()) in all sessions with one server (`server`:
  // rpc::ClientOptions::target). Counted per server, so that an absent server does not affect
  // sessions with others.
  virtual std::atomic<int64_t>& saved_bytes(const std::string& server) = 0;
  // True for a while after the server did not answer this process in time. Waits are short then, so
  // that 200 files do not wait 200 times.
  virtual bool Suspect(const std::string& server) = 0;
  virtual void SetSuspect(const std::string& server, bool suspect) = 0;

  // True for half a minute after a session found this server (a target) silent, or left it because
  // another server of the cluster serves the file. Meanwhile the other sessions with the server ask
  // the others earlier, too.
  virtual bool IsDoubtful(const std::string& /*target*/) { return false; }
  virtual void SetDoubtful(const std::string& /*target*/) {}

  // NewestToken(): the newest known token for the server. The other call has the token's file read
  // again, after the server refused the token. Neither waits for the file.
  virtual std::string NewestToken(const rpc::ClientOptions& options) { return options.token; }
  virtual void ReadTokenSoon(const rpc::ClientOptions& /*options*/) {}

  // For the program's thread, with no session's mutex held. As FindOutsideChange() in
  // outside_change.h. Waits at most `timeout` without an answer, and reads `file` for at most
  // `time_max`. kUnimplemented: all of the file counts as changed.
  virtual absl::StatusOr<OutsideChange> FindOutsideChange(
      const rpc::ClientOptions& /*server*/, const std::string& /*name*/, int64_t /*cut*/,
      const FileReader& /*file*/, absl::Duration /*timeout*/, absl::Duration /*time_max*/) {
    return absl::UnimplementedError("no digests");
  }

  // For the sender thread. Begins a stream to the server. The host owns it until it has ended.
  // `owner` must outlive the stream, or be taken away by Abandon().
  virtual Stream* StartStream(const rpc::ClientOptions& options, StreamOwner* owner) = 0;
  // The next StartStream() connects afresh, without gRPC's back-off.
  virtual void DropChannel(const rpc::ClientOptions& options) = 0;
  // For the sender thread. Asks one server whether it serves the file `name`, for at most
  // `timeout`. `answered` is called once, on the sender thread, with no session's mutex held, also
  // where the question is given up before a fork.
  virtual void AskServer(const rpc::ClientOptions& /*options*/, const std::string& /*name*/,
                         absl::Duration /*timeout*/,
                         std::function<void(const ServerAnswer&)> /*answered*/) {}
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_SESSION_HOST_H_
