// One file that this process writes with server=embedded: its lease, its store and its session.
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

// How far a cut must come before a barrier returns; see session_api.h.
enum class AckLevel : uint8_t { kVisible, kDurable };

// The state of the file, for status and log.
struct EmbeddedProgress {
  store::CutNumber cut = 0;  // durable
  store::VersionNumber version = 0;
  uint64_t pending_bytes = 0;  // written since the last cut
  bool changed = false;        // a byte was changed since the open
};

// Takes the lease at once, but makes a store only when a byte really changes: HDF5 opens files to
// see whether they exist, and an untouched "r+" open rewrites an identical superblock. Until then
// this reads the head. Thread-compatible; FileForReaders() is thread-safe.
class EmbeddedWriter {
 public:
  // Calls `tell` with lines for the user, within any call and on its thread.
  // Errors: those of EmbeddedLease::Take() and HeadLock::Take(); kNotFound: no such file, with
  // kContinue.
  static absl::StatusOr<std::unique_ptr<EmbeddedWriter>> Open(
      EmbeddedWriterConfig config, std::function<void(const std::string&)> tell);
  // Drops writes after the last cut, and releases the lease.
  ~EmbeddedWriter();

  uint64_t size_bytes() const { return size_bytes_; }
  // True: the newest cut has all that was written.
  bool is_at_cut() const { return is_at_cut_; }
  // Fills `out`; beyond the end zeros.
  absl::Status Read(uint64_t offset, absl::Span<char> out);
  absl::Status Write(uint64_t offset, std::string_view bytes);
  absl::Status Truncate(uint64_t size_bytes);
  // Ends a cut; does nothing if no byte was changed since the open. kDeadlineExceeded: the cut is
  // made, and not durable yet. Other errors: there is no cut, and the session can only end.
  absl::Status Barrier(store::BarrierKind kind, AckLevel ack, const std::string& comment);
  // Ends the session. With kClean its writes become a version. OK: the version is durable. The head
  // may get it only at the next open, if the timeout passes before.
  absl::Status Close(store::SessionEnd end, const std::string& comment);

  EmbeddedProgress Progress() const;
  // The file, for readers in this process. Fails every call once the writer has closed.
  absl::StatusOr<std::shared_ptr<store::File>> FileForReaders();

  // Around fork(2); see EmbeddedStore.
  bool PrepareFork(absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // In a forked child: lets go of the locks, which stay the parent's.
  void LeaveToParent();

 private:
  EmbeddedWriter(EmbeddedWriterConfig config, std::unique_ptr<store::EmbeddedLease> lease,
                 std::function<void(const std::string&)> tell);
  absl::Status Look();
  absl::Status OpenStore() ABSL_LOCKS_EXCLUDED(store_mutex_);
  // The error of a file whose store could not be opened. Such a file can only be closed.
  absl::Status NoLease() const;
  absl::Status StartSession();
  // Makes a version of folded closes, if it is due or a new generation begins.
  absl::Status MakeFoldedVersion();
  bool EqualsHead(uint64_t offset, std::string_view bytes);
  absl::StatusOr<store::CutNumber> Cut(store::BarrierKind kind, const std::string& comment);
  // The age of the newest version; infinite: there is none.
  absl::Duration AgeOfNewest();
  // The age of the newest commit, durable or not.
  absl::Duration AgeOfCommit();
  absl::Status AwaitDurable(store::CutNumber cut);
  absl::Status EndSession(store::SessionEnd end);

  // Written by the store's thread.
  struct Durable {
    absl::Mutex mutex;
    store::CutNumber cut ABSL_GUARDED_BY(mutex) = 0;
    store::VersionNumber version ABSL_GUARDED_BY(mutex) = 0;
    // The time of the newest commit, durable or not; past: it changed nothing.
    absl::Time commit_made ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
    absl::Status error ABSL_GUARDED_BY(mutex);
  };

  const EmbeddedWriterConfig config_;
  const std::function<void(const std::string&)> tell_;
  std::unique_ptr<store::EmbeddedLease> lease_;  // null: the store owns it
  store::EmbeddedLease* lease_in_use_;           // null: given back, or lost
  HeadLock head_lock_;
  std::unique_ptr<EnvFile> head_;  // read until the session begins; null: there is none
  uint64_t size_bytes_ = 0;
  uint64_t pending_bytes_ = 0;
  bool is_at_cut_ = false;
  // Held while store and file are made, and by readers.
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
