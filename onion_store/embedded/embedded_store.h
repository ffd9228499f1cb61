// The store of one local file, in the process that uses it. X.h5 is the head, X.h5.h5m/ its
// history; the bytes: docs/reference/format.md, "Embedded history". A lease in the history keeps
// processes apart. There are no other files.
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

// Whether Take() gives the lease of a file that is mirrored to a server. kGiven: for a caller that
// changes the head and makes no history (mirror_notes.h).
enum class Mirrored : uint8_t { kRefused, kGiven };

// The right to use a file's history: exclusive for one process that writes it, or shared by
// processes that read it. Thread-compatible.
class EmbeddedLease final : public EnvLock {
 public:
  // `head` is the path of X.h5, absolute and without symlinks; it need not exist. With kExclusive
  // this makes a missing history; it is removed again unless it gets content. Waits at most
  // `timeout` for other processes. Messages to those processes name `program`. `way`: for an edit
  // that was broken off (SettleJournal()).
  //
  // Errors: kUnavailable         other processes have the lease (the message names them, if known),
  //                              or have the head open.
  //         kFailedPrecondition  the file belongs to a server: it lies under the root of one, or is
  //                              mirrored to one. Or a broken-off edit cannot be finished.
  //         kNotFound            no such directory; with kShared no history.
  //         kPermissionDenied    no history can be made or read there.
  static absl::StatusOr<std::unique_ptr<EmbeddedLease>> Take(
      Env& env, const std::filesystem::path& head, LockKind kind, const std::string& program,
      absl::Duration timeout, Mirrored mirrored = Mirrored::kRefused,
      JournalWay way = JournalWay::kForward);
  ~EmbeddedLease() override;
  // For a forked child, which has inherited the lock: releases it there. The parent keeps it
  // (flock(2): the lock ends with the last descriptor).
  void LeaveToParent() { lock_.reset(); }

  // Around fork(2), for the shared leases of all readers. The child releases the leases that it
  // inherits, so that it keeps no process from writing. It must not use files that were opened
  // under them.
  static void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  Env& env() const { return env_; }
  const std::filesystem::path& directory() const { return directory_; }
  // The name of the head in its directory.
  const std::string& name() const { return name_; }
  // The directory of the head; names are relative to it.
  EnvTree& tree() const { return *tree_; }
  // True: the file is mirrored to a server, which has its versions.
  bool is_mirrored() const { return is_mirrored_; }
  // True: there is a version.
  absl::StatusOr<bool> HasHistory() const;
  // True: a crash may have left the head between two cuts.
  absl::StatusOr<bool> IsUnclean() const;
  // For the user: how a broken-off edit was settled; empty: there was none.
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

// How programs that open the head as a plain file are kept out while it changes.
enum class HeadGuard : uint8_t {
  kCaller,  // the caller holds the head's lock while it writes, as HDF5 does
  kApply,   // each change takes the head's lock, and waits while another program has it
};

struct EmbeddedOptions {
  HeadGuard guard = HeadGuard::kCaller;
  uint64_t memory_max_bytes = uint64_t{64} << 20;
  uint32_t page_size_bytes = 4096;
  // The longest time from a cut (a tick) until it is durable.
  absl::Duration durable_every = absl::Seconds(1);
  // The head's mode is the session's, under this umask.
  uint32_t umask_bits = 0;
  int background_threads = 1;
};

// Acts as a root with this one file in it; other names are kNotFound. It moves and removes nothing:
// users do that with mv and rm, of head and history.
class EmbeddedStore : public Store {
 public:
  // `lease` is an exclusive one; the store owns it until it is closed. OpenFile() opens and
  // recovers the file.
  static absl::StatusOr<std::unique_ptr<EmbeddedStore>> Open(std::unique_ptr<EmbeddedLease> lease,
                                                             const EmbeddedOptions& options);
  // The only name.
  virtual const std::string& name() const = 0;
  // The version that OpenFile() made of a change from outside; 0: there was none.
  virtual VersionNumber outside_change() = 0;
  // Around fork(2). Waits at most `timeout` until no background work runs, and lets none begin
  // until ParentAfterFork(). False: work still runs, and the child must not use the store.
  virtual bool PrepareFork(absl::Duration timeout) = 0;
  virtual void ParentAfterFork() = 0;
};

// Opens a file to read its versions, beside other readers and without threads. A file that a crash
// or another program left unclean is recovered first, under the exclusive lease. `notice` gets a
// line about that for the user, or comes back empty.
//
// Errors: those of EmbeddedLease::Take() and of Store::OpenFile().
absl::StatusOr<std::shared_ptr<File>> OpenEmbeddedToRead(Env& env,
                                                         const std::filesystem::path& head,
                                                         const std::string& program,
                                                         absl::Duration timeout,
                                                         std::string* notice);

// A line for the user about EmbeddedStore::outside_change().
std::string OutsideChangeNotice(const std::filesystem::path& head, VersionNumber version);

// Brings a head that a crash left between two cuts to the newest durable one, for readers of the
// plain file. Waits at most `patience` for other processes, and `timeout` for the work. `notice` as
// above.
//
// Errors: as above, and
//         kUnavailable       only if other processes have the lease.
//         kDeadlineExceeded  the work takes longer, or another program has the head open.
absl::Status HealEmbedded(Env& env, const std::filesystem::path& head, const std::string& program,
                          absl::Duration patience, absl::Duration timeout, std::string* notice);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_EMBEDDED_STORE_H_
