// The one thread of the module: it drives the streams of all sessions on one completion queue.
// Started with the first session, stopped when the host library closes down and before a fork.
//
// Lives on the heap and is never destroyed: HDF5 closes files from its own atexit handler, after
// the destructors of libraries loaded later have run.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_ENGINE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_ENGINE_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_vfd/session/frame_pool.h"
#include "client_vfd/session/stream.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

class Session;

// Lock order: a session's mutex before the engine's; the engine calls sessions with none held.
class Engine {
 public:
  static Engine& Get();

  // Keeps the session until it is done.
  void Add(std::shared_ptr<Session> session);
  // Has the sender thread look at the session soon. Any thread, cheap when it is awake already.
  void Wake(Session* session);
  // The newest session of the same file that has not ended yet and was not followed by another;
  // null if there is none.
  std::shared_ptr<Session> Predecessor(const Session& session);

  FramePool& pool() { return *pool_; }
  // Copies of overwritten bytes in all sessions.
  std::atomic<int64_t>& saved_bytes() { return saved_bytes_; }
  // True for a while after a server of this process did not answer in time: waits are short then,
  // so that 200 files do not wait 200 times.
  bool Suspect();
  void SetSuspect(bool suspect);

  // For the sender thread.
  grpc::CompletionQueue* queue() { return queue_.get(); }
  std::shared_ptr<grpc::Channel> ChannelTo(const rpc::ClientOptions& options);
  // The next ChannelTo() connects afresh, without gRPC's back-off.
  void DropChannel(const rpc::ClientOptions& options);
  void Adopt(std::unique_ptr<Stream> stream);

  // For others in this module that use gRPC: `start` may be what begins it in this process.
  void StartGrpc(absl::FunctionRef<void()> start);

  // Waits at most `timeout` for closed sessions, then stops the thread if none is open.
  void Drain(absl::Duration timeout);

  // `ended` has given its lease back, or will never have one: the next session of its file may go.
  void WakeSuccessors(const Session& ended);

  // Of the sessions that are not done; zero if there are none.
  absl::Duration LongestTimeout();

  // pthread_atfork: the streams are half-closed, the thread and gRPC stopped. In the parent
  // sessions connect again when they next have something to send. The child begins with none: those
  // that it inherited are the parent's, and its own files get new ones. Both mutexes are held from
  // the first to one of the others. `also_used`: others in this module just let go of gRPC.
  void PrepareFork(bool also_used) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // False in a child of a fork that could not wait for gRPC's end: there it hangs.
  bool usable() const { return usable_; }

 private:
  Engine();

  void NoteEpolls(const std::vector<int>& before);
  void StartLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: the thread was not running.
  bool Stop();
  void Loop();
  // True if there was one.
  bool RunReady();
  void RunTimers();
  std::vector<std::shared_ptr<Session>> Sessions();
  void Reap();
  static std::string KeyOf(const rpc::ClientOptions& options);

  absl::Mutex mutex_;
  std::vector<std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Session>> ready_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;  // ever, in this process
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time suspect_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<std::thread> thread_;
  absl::Mutex control_mutex_;  // serializes start and stop; before mutex_

  // The sender thread's own.
  std::unique_ptr<grpc::CompletionQueue> queue_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
  std::map<Stream*, std::unique_ptr<Stream>> streams_;

  FramePool* pool_;
  std::atomic<int64_t> saved_bytes_{0};
  std::atomic<bool> usable_{true};
  // What gRPC polls with, in a process where it began with us.
  std::vector<int> epolls_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_ENGINE_H_
