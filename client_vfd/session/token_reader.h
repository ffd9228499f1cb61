// Tokens that a login renews while a program runs, and credentials of munge. The files lie in a
// home directory, which may hang: a thread of its own, `h5m-token`, reads them, and nobody waits
// for it.
//
// The thread runs while a token that expires is in use, or after a server has refused one. A
// process that can start no thread goes on with the tokens that it has.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_TOKEN_READER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_TOKEN_READER_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

// Thread-safe; its lock is a leaf, and never held over a file. Lives on the heap and is never
// destroyed: its thread may hang in a read when the process ends.
class TokenReader {
 public:
  // How often files of tokens that expire are read. A credential of munge is made anew when a
  // server has refused one; rpc::Authorize() renews it by its age.
  static constexpr absl::Duration kPeriod = absl::Seconds(2);
  // The least time between two credentials, for a user whom the server refuses with each.
  static constexpr absl::Duration kMungePause = absl::Seconds(5);

  static TokenReader& Get();

  // `options` were just made: their token is the newest of its source.
  void Note(const rpc::ClientOptions& options);
  // The newest token of the source of `options` that is known. Without one: the token in them.
  std::string Newest(const rpc::ClientOptions& options);
  // A server has refused the token: has its file read now, or a new credential made.
  void ReadSoon(const rpc::ClientOptions& options);

  // pthread_atfork: the child has no thread, and begins with a reader of its own.
  static void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  // The thread ends after this many periods without a use. It counts periods instead of reading a
  // clock: at the end of the process, objects with static storage may be gone while the thread
  // still runs.
  static constexpr int kIdlePeriods = 30;

  struct Known {
    std::string source = {};
    std::string target = {};                 // for a credential of munge
    std::string token = {};                  // the newest one
    bool is_wanted = false;                  // a server has refused one
    absl::Time made = absl::InfinitePast();  // a credential, as it was wanted; steady
  };

  Known& Find(const rpc::ClientOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Use(bool needs_thread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  bool IsWanted();
  // False: no token was used for kIdlePeriods, and the thread ends.
  bool AwaitTurn();
  // The tokens whose files are to be read now.
  std::map<std::string, Known> TakeDue();
  void ReadAll();

  absl::Mutex mutex_;
  // Keyed by source. A credential of munge is for one server, so its key has source and target.
  std::map<std::string, Known> tokens_ ABSL_GUARDED_BY(mutex_);
  int idle_periods_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last use
  bool is_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_TOKEN_READER_H_
