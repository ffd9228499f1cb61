// The store of one local file, in the process that uses it: X.h5 is the head, X.h5.h5m/ its
// history, in the bytes of docs/reference/format.md, "Embedded history". A lease in the history
// keeps two processes apart, and a store without a root keeps nothing else anywhere.
#ifndef H5MIRROR_ONION_STORE_EMBEDDED_EMBEDDED_STORE_H_
#define H5MIRROR_ONION_STORE_EMBEDDED_EMBEDDED_STORE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "onion_store/embedded/cut_journal.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// Whether the lease of a file that is mirrored to a server is given: to who changes the head and
// keeps no history (mirror_notes.h).
enum class Mirrored : uint8_t { kRefused, kGiven };

// The right to use a file's history: by one process to write it, or by any number to read it.
// Thread-compatible.
class EmbeddedLease final : public EnvLock {
 public:
  // `head` is the path of X.h5, absolute and without symlinks; it need not exist. Makes the history
  // with kExclusive where there is none; it is removed again unless something is kept in it.
  // Waits at most `timeout` for others. `program` is for the messages that others get. `way` is for
  // an edit that was broken off.
  //
  // Errors: kUnavailable         others have it, and the message says who, as far as is known.
  //         kFailedPrecondition  the file belongs to a server: it lies under the root of one, or is
  //                              mirrored to one; or an edit of it was broken off, and cannot be
  //                              finished (SettleJournal(), which also has kUnavailable).
  //         kNotFound            no such directory; with kShared no history.
  //         kPermissionDenied    no history can be made or read there.
  static absl::StatusOr<std::unique_ptr<EmbeddedLease>> Take(
      Env& env, const std::filesystem::path& head, LockKind kind, const std::string& program,
      absl::Duration timeout, Mirrored mirrored = Mirrored::kRefused,
      JournalWay way = JournalWay::kForward);
  ~EmbeddedLease() override;
  // In a forked child, which has inherited the lock: lets go of it there, while the parent keeps it
  // (flock(2): it goes with the last descriptor).
  void LeaveToParent() { lock_.reset(); }

  // Around fork(2), for the shared leases of all readers: the child lets go of those that it
  // inherits, so that it keeps nobody from writing; what was opened with them must not be used
  // there.
  static void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  Env& env() const { return env_; }
  const std::filesystem::path& directory() const { return directory_; }
  // Of the head in its directory.
  const std::string& name() const { return name_; }
  // Of both, names relative to the directory.
  EnvTree& tree() const { return *tree_; }
  // Whether it is mirrored to a server, which then has its versions.
  bool is_mirrored() const { return is_mirrored_; }
  // Whether there is a version.
  absl::StatusOr<bool> HasHistory() const;
  // Whether a crash may have left the head between two cuts.
  absl::StatusOr<bool> IsUnclean() const;
  // What the user should know of an edit that was broken off, or empty.
  const std::string& notice() const { return notice_; }

 private:
  EmbeddedLease(Env& env, const std::filesystem::path& head, LockKind kind,
                std::unique_ptr<EnvTree> tree);
  absl::Status TakeNow(const std::string& program, JournalWay way);
  absl::Status MakeHistory();
  void Release();
  absl::Status TakenByOthers() const;

  Env& env_;
  const std::filesystem::path directory_;
  const std::string name_;
  const LockKind kind_;
  const std::unique_ptr<EnvTree> tree_;
  bool is_mirrored_ = false;
  std::unique_ptr<EnvLock> lock_;  // null: not taken, or left to the parent
  std::string notice_;
};

// Who keeps programs out that have the head open as a plain file, while it changes.
enum class HeadGuard : uint8_t {
  kCaller,  // holds its lock for as long as it writes, as HDF5 does
  kApply,   // each change of the head takes it; where others have it, the head is changed later
};

struct EmbeddedOptions {
  HeadGuard guard = HeadGuard::kCaller;
  uint64_t memory_max_bytes = uint64_t{64} << 20;
  uint32_t page_size_bytes = 4096;
  // A cut becomes durable at the latest this long after it was made.
  absl::Duration durable_every = absl::Seconds(1);
  // The head's mode is the session's, under this umask.
  uint32_t umask_bits = 0;
  int background_threads = 1;
};

// As a root with this one file in it. Not found are all other names; nothing is moved or removed,
// which a user does with mv and rm, of both.
class EmbeddedStore : public Store {
 public:
  // `lease` is an exclusive one; the store keeps it until it is closed. The file is opened, and
  // recovered, by OpenFile().
  static absl::StatusOr<std::unique_ptr<EmbeddedStore>> Open(std::unique_ptr<EmbeddedLease> lease,
                                                             const EmbeddedOptions& options);
  // The only name.
  virtual const std::string& name() const = 0;
  // The version that OpenFile() made of what others had done to the head; 0: nothing was done.
  virtual VersionNumber outside_change() = 0;
  // Around fork(2). Waits, at most `timeout`, until the background does nothing, and keeps it so
  // until ParentAfterFork(). False: it is still at work, and a child had better use nothing of it.
  virtual bool PrepareFork(absl::Duration timeout) = 0;
  virtual void ParentAfterFork() = 0;
};

// The versions of a file, to be read: beside others who do, and without threads. What a crash, or
// another program, left unclean is put in order first, in which nobody else may take part.
// `notice` gets what the user should know of that; it may come back empty.
//
// Errors: those of EmbeddedLease::Take() and of Store::OpenFile().
absl::StatusOr<std::shared_ptr<File>> OpenEmbeddedToRead(Env& env,
                                                         const std::filesystem::path& head,
                                                         const std::string& program,
                                                         absl::Duration timeout,
                                                         std::string* notice);

// What to tell a user of EmbeddedStore::outside_change().
std::string OutsideChangeNotice(const std::filesystem::path& head, VersionNumber version);

// Brings the head to the newest durable cut where a crash left it between two, for whoever reads it
// as a plain file. Waits at most `patience` for others, and `timeout` for the work. Errors as
// above; kUnavailable only where others have the lease; kDeadlineExceeded: the work is not done, as
// it takes longer, or as others have the head open.
absl::Status HealEmbedded(Env& env, const std::filesystem::path& head, const std::string& program,
                          absl::Duration patience, absl::Duration timeout, std::string* notice);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_EMBEDDED_STORE_H_
