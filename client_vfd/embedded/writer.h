// One file that this process writes with server=embedded: the session, and what is around it.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_WRITER_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client_vfd/embedded/head_lock.h"
#include "onion_store/embedded/embedded_store.h"

namespace h5mirror::vfd {

struct EmbeddedWriterConfig {
  Env* env = &Env::Posix();
  std::string path;  // absolute, no symlinks
  store::SessionStart start = store::SessionStart::kContinue;
  HeadLocking locking = HeadLocking::kYes;
  uint32_t mode_bits = 0644;
  absl::Duration timeout = absl::Seconds(5);
  uint32_t page_size_bytes = 4096;
  absl::Duration version_every;         // zero: flushes make no versions
  absl::Duration version_min_interval;  // zero: every close makes one
  std::string program;
};

// What a program waits for at a barrier; see session_api.h.
enum class AckLevel : uint8_t { kVisible, kDurable };

// How far the newest cut has come, for status and log.
struct EmbeddedProgress {
  store::CutNumber cut = 0;  // durable
  store::VersionNumber version = 0;
  uint64_t pending_bytes = 0;  // written since the last cut
  bool changed = false;        // anything, since the open
};

// Takes the lease at once, and makes a store only when a byte really changes: HDF5 opens files to
// look whether they are there, and an untouched "r+" open rewrites an identical superblock. Until
// then it reads the head. Thread-compatible; FileForReaders() is for any thread.
class EmbeddedWriter {
 public:
  // `tell` gets what the user should know, from the thread of the call that it happens in.
  // Errors: those of EmbeddedLease::Take() and HeadLock::Take(); kNotFound: no such file, with
  // kContinue.
  static absl::StatusOr<std::unique_ptr<EmbeddedWriter>> Open(
      EmbeddedWriterConfig config, std::function<void(const std::string&)> tell);
  // Gives up what was not cut, and releases the lease.
  ~EmbeddedWriter();

  uint64_t size_bytes() const { return size_bytes_; }
  // Beyond the end zeros.
  absl::Status Read(uint64_t offset, absl::Span<char> out);
  absl::Status Write(uint64_t offset, std::string_view bytes);
  absl::Status Truncate(uint64_t size_bytes);
  // Ends a cut; does nothing where nothing was changed since the open. kDeadlineExceeded: the cut
  // is made, and not durable yet. Other errors: there is no cut, and the session can only end.
  absl::Status Barrier(store::BarrierKind kind, AckLevel ack, const std::string& comment);
  // Ends the session. With kClean a version is made of what is there; OK when it is durable,
  // although the head may get it at the next open only, where the timeout passes.
  absl::Status Close(store::SessionEnd end, const std::string& comment);

  EmbeddedProgress Progress() const;
  // For readers in this process; it is of no use any more once the writer has closed.
  absl::StatusOr<std::shared_ptr<store::File>> FileForReaders();

  // Around fork(2); see EmbeddedStore.
  bool PrepareFork(absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // In a forked child: lets go of the locks, which the parent keeps.
  void LeaveToParent();

 private:
  EmbeddedWriter(EmbeddedWriterConfig config, std::unique_ptr<store::EmbeddedLease> lease,
                 std::function<void(const std::string&)> tell);
  absl::Status Look();
  absl::Status OpenStore() ABSL_LOCKS_EXCLUDED(store_mutex_);
  // What a file says whose store could not be opened: it can only be closed.
  absl::Status NoLease() const;
  absl::Status StartSession();
  // Makes a version of what earlier closes folded, where it is due or would be left behind.
  absl::Status MakeFoldedVersion();
  bool EqualsHead(uint64_t offset, std::string_view bytes);
  absl::StatusOr<store::CutNumber> Cut(store::BarrierKind kind, const std::string& comment);
  // How old the newest version is; infinite where there is none.
  absl::Duration AgeOfNewest();
  // The same of the newest commit, durable or not.
  absl::Duration AgeOfCommit();
  absl::Status AwaitDurable(store::CutNumber cut);
  absl::Status EndSession(store::SessionEnd end);

  // Told by the store's thread.
  struct Durable {
    absl::Mutex mutex;
    store::CutNumber cut ABSL_GUARDED_BY(mutex) = 0;
    store::VersionNumber version ABSL_GUARDED_BY(mutex) = 0;
    // Of the newest commit, durable or not; long ago where it changed nothing.
    absl::Time commit_made ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
    absl::Status error ABSL_GUARDED_BY(mutex);
  };

  const EmbeddedWriterConfig config_;
  const std::function<void(const std::string&)> tell_;
  std::unique_ptr<store::EmbeddedLease> lease_;  // null once the store has it
  store::EmbeddedLease* lease_in_use_;           // null: given back, or lost
  HeadLock head_lock_;
  std::unique_ptr<EnvFile> head_;  // read until the session begins; null: there is none
  uint64_t size_bytes_ = 0;
  uint64_t pending_bytes_ = 0;
  // Held while the two are made, and by readers.
  absl::Mutex store_mutex_;
  std::unique_ptr<store::EmbeddedStore> store_;
  std::shared_ptr<store::File> file_;
  store::Token token_ = 0;  // 0: no session
  store::SessionId session_id_{};
  uint64_t barrier_count_ = 0;
  store::CutNumber last_cut_ = 0;
  const std::shared_ptr<Durable> durable_ = std::make_shared<Durable>();
  std::unique_ptr<char[]> scratch_;
  bool locked_for_fork_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_WRITER_H_
