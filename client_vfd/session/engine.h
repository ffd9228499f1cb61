// The one thread of the module: it drives the streams of all sessions on one completion queue.
// Started with the first session, stopped when the host library closes down and before a fork.
//
//   kStopped --Wake--> kRunning --Stop--> kStopping --the thread has ended--> kStopped
//      | ^                                    |
//      | +--------ParentAfterFork, ChildAfterFork-------+
//      |                                      |         |
//      +------------ PrepareFork -------------+---> kForking: nothing starts the thread
//
// Lives on the heap and is never destroyed: HDF5 closes files from its own atexit handler, after
// the destructors of libraries loaded later have run.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_ENGINE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_ENGINE_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/steady_time.h"
#include "client_vfd/session/descriptor_mark.h"
#include "client_vfd/session/fork_polling.h"
#include "client_vfd/session/frame_pool.h"
#include "client_vfd/session/queue_user.h"
#include "client_vfd/session/session_host.h"
#include "grpcpp/alarm.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

class Engine final : public SessionHost {
 public:
  // How long a fork waits for calls and streams to end politely, and for gRPC to be gone.
  static constexpr absl::Duration kForkWait = absl::Milliseconds(500);
  // After a wait that timed out, later waits are short for this long.
  static constexpr absl::Duration kSuspectFor = absl::Seconds(10);
  // A server that a session left for another one of its cluster counts as doubtful for this long.
  static constexpr absl::Duration kDoubtfulFor = absl::Seconds(30);

  static Engine& Get();
  // The key of a channel: two users with the same key share one.
  static std::string KeyOf(const rpc::ClientOptions& options);

  // SessionHost, in real time.
  absl::Time Now() override { return SteadyNow(); }
  absl::Time TimeOfDay() override { return absl::Now(); }
  Bytes16 RandomId() override { return RandomBytes16(); }
  void Await(absl::Mutex& mutex, absl::FunctionRef<bool()> condition, absl::Time deadline) override;
  void Add(std::shared_ptr<Session> session) override;
  void Wake(Session* session) override;
  std::shared_ptr<Session> Predecessor(const Session& session) override;
  void WakeSuccessors(const Session& ended) override;
  FramePool& pool() override { return *pool_; }
  std::atomic<int64_t>& saved_bytes(const std::string& server) override;
  bool Suspect(const std::string& server) override;
  void SetSuspect(const std::string& server, bool suspect) override;
  bool IsDoubtful(const std::string& target) override;
  void SetDoubtful(const std::string& target) override;
  std::string NewestToken(const rpc::ClientOptions& options) override;
  void ReadTokenSoon(const rpc::ClientOptions& options) override;
  Stream* StartStream(const rpc::ClientOptions& options, StreamOwner* owner) override;
  void DropChannel(const rpc::ClientOptions& options) override;
  void AskServer(const rpc::ClientOptions& options, const std::string& name, absl::Duration timeout,
                 std::function<void(const ServerAnswer&)> answered) override;
  absl::StatusOr<OutsideChange> FindOutsideChange(const rpc::ClientOptions& server,
                                                  const std::string& name, int64_t cut,
                                                  const FileReader& file, absl::Duration timeout,
                                                  absl::Duration time_max) override;

  // For other parts of this module that use gRPC: calls `start`, which may begin gRPC in this
  // process. Errors: as rpc::CheckGrpcThreads(); then `start` was not called.
  absl::Status StartGrpc(absl::FunctionRef<void()> start);

  // Waits at most `timeout` for closed sessions, then stops the thread if none is open.
  void Drain(absl::Duration timeout);

  // The longest timeout of a session that is not done; zero: all are done.
  absl::Duration LongestTimeout();

  // pthread_atfork: half-closes the streams, stops the thread and gRPC. In the parent, sessions
  // connect again when they have something to send. The child begins without sessions: inherited
  // ones are the parent's, and its own files get new ones. Both mutexes are held from PrepareFork()
  // to one of the others. `also_used`: other parts of this module have just let go of gRPC.
  void PrepareFork(bool also_used) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // kFailedPrecondition: gRPC must not be called in this process, for its whole life. In a forked
  // child whose parent could not end gRPC before the fork, it hangs. Where the program has closed
  // gRPC's descriptors, it would use those of the program. The message is for people.
  absl::Status CheckUsable() const;
  // The program has closed descriptors that it did not open. Objects of gRPC must not be destroyed
  // either: they would close theirs once more.
  bool HasLostDescriptors() const { return !mark_.is_there(); }
  const DescriptorMark& mark() const { return mark_; }
  // Unsets `channel`. One whose descriptors are lost is kept for ever. Any thread, under any lock.
  void LetGo(std::shared_ptr<grpc::Channel>& channel) const;

 private:
  struct PerServer {
    std::atomic<int64_t> saved_bytes{0};
    absl::Time suspect_until = absl::InfinitePast();
    absl::Time doubtful_until = absl::InfinitePast();
  };

  enum class Phase { kStopped, kRunning, kStopping, kForking };

  Engine();

  // False: there are no threads for it. The sessions fall behind; a later Wake() tries again.
  bool StartLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stops the thread; `after`: kStopped or kForking. False: it was not running.
  bool Stop(Phase after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_mutex_);
  // Waits for the end of the thread, a few seconds at most. False: it is stuck.
  bool AwaitEnd();
  Phase phase() ABSL_LOCKS_EXCLUDED(mutex_);
  void Ring(grpc::Alarm& alarm);

  // The sender thread.
  void Loop();
  // Waits for the next event, at most until `deadline`, and hands it to its user. False: the
  // queue is shut down.
  bool HandleNext(absl::Time deadline);
  // Ends the streams, in time or not; then nothing comes from the queue any more.
  void EndStreams();
  void ShutDown();
  // gRPC's descriptors are lost: its timers end, the sessions go on locally, and so does the
  // thread.
  void AbandonGrpc();
  // True: all sessions are abandoned, and the thread has nothing more to do.
  bool LeaveAbandoned() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits a short while for AbandonGrpc(), then goes to the phase.
  void AwaitAbandoned(Phase after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Pumps the sessions that were woken. True: there was one.
  bool RunReady();
  void RunTimers();
  std::vector<std::shared_ptr<Session>> Sessions();
  void Reap();
  std::shared_ptr<grpc::Channel> ChannelTo(const rpc::ClientOptions& options);

  absl::Mutex mutex_;
  std::vector<std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Session>> ready_ ABSL_GUARDED_BY(mutex_);
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStopped;
  bool alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_left_ ABSL_GUARDED_BY(mutex_) = false;  // The thread has ended AbandonGrpc().
  std::map<std::string, PerServer> servers_ ABSL_GUARDED_BY(mutex_);  // by target; never erased
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<std::thread> thread_;
  absl::Mutex control_mutex_;  // serializes start and stop; before mutex_

  // The sender thread's own.
  std::unique_ptr<grpc::CompletionQueue> queue_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
  std::map<QueueUser*, std::unique_ptr<QueueUser>> users_;

  FramePool* pool_;
  std::atomic<bool> usable_{true};
  ForkPolling polling_ ABSL_GUARDED_BY(mutex_);
  DescriptorMark mark_;                                                   // set with mutex_
  absl::Time next_start_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // after one that failed
  std::atomic<bool> has_ended_{false};                                    // the thread
  std::atomic<bool> is_stuck_{false};  // in gRPC, for the life of the process
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_ENGINE_H_
