// The store of one server: every file under a root, its head and its history.
#ifndef H5MIRROR_ONION_STORE_STORE_H_
#define H5MIRROR_ONION_STORE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "onion_store/file.h"
#include "onion_store/history_sizes.h"

namespace h5mirror::store {

// Of the pages that are saved for older versions. What was saved before stays as it is.
enum class PageCompression : uint8_t { kNone, kZstd };

struct StoreOptions {
  std::filesystem::path root;
  // For all files together: the index of staged pages, buffers of apply and of readers.
  // Beyond it the store spills to its files or refuses with kResourceExhausted.
  uint64_t memory_max_bytes = uint64_t{256} << 20;
  // For new files: a power of two, 512..65536.
  uint32_t page_size_bytes = 4096;
  PageCompression page_compression = PageCompression::kZstd;
  // A cut becomes durable at the latest this long after it was made.
  absl::Duration durable_every = absl::Seconds(10);
  // Heads get the local file's mode under this umask; history is 0600 (dirs 0700).
  uint32_t umask_bits = 0027;
  // Group of heads; empty: the process's own.
  std::string group;
  // Bytes of the disk, for each file, that may be held for cuts that readers have pinned; beyond,
  // the oldest ones expire.
  uint64_t snapshot_max_bytes = uint64_t{1} << 30;
  // Threads that sync and apply. 0: Store::RunBackground() does that.
  int background_threads = 2;
};

// One row of List().
struct FileSummary {
  std::string name;
  uint64_t size_bytes = 0;
  absl::Time modify_time;
};

// A file that was removed and can be brought back.
struct RemovedFile {
  std::string id;  // of this removal: a name can be removed more than once
  std::string name;
  absl::Time removed;
  absl::Time expires;
  uint64_t disk_bytes = 0;  // of head and history, holes too
  Provenance who;           // users, host, program, pid
};

// Thread-safe. Holds a lock on the root while it lives.
class Store {
 public:
  // Locks the root and recovers nothing yet: each file is recovered when it is first
  // opened, and a background pass opens those that a crash left unclean.
  // `env` must outlive the store.
  //
  // Errors: kNotFound            the root does not exist.
  //         kFailedPrecondition  another process serves the root, or it was written by a
  //                              newer format (both ranges are named).
  //         kPermissionDenied    the root cannot be written.
  static absl::StatusOr<std::unique_ptr<Store>> Open(Env& env, StoreOptions options);

  // Makes every cut durable, then applies as much as fits into `deadline`, and stops between two
  // rounds of it. Sessions must have ended. OK also where durable cuts are left to apply: nothing
  // is lost, the next start goes on with them, and until then the head may hold a part of them
  // (export reads whole versions). An error: a cut could not be made durable.
  // Called by the destructor with 5 s.
  virtual absl::Status Close(absl::Duration deadline) = 0;

  virtual ~Store() = default;

  // Told of every new cut of every file, by the thread that made it, with no lock held; it must not
  // wait, nor call the store. Null: nobody is told, from the return of this on.
  using CutListener = std::function<void(const std::string& name, CutNumber cut)>;
  virtual void SetCutListener(CutListener listener) = 0;

  // Opens a file's store; recovers it if a crash left it unclean. One object per file is
  // shared by all callers.
  //
  // Errors: kInvalidArgument  the name leaves the root or is not one of ours (CheckName).
  //         kNotFound         no such file.
  //         kDataLoss         the store of this file is damaged beyond recovery.
  virtual absl::StatusOr<std::shared_ptr<File>> OpenFile(std::string_view name) = 0;

  // As OpenFile, and makes an empty one (no version, no head) where there is none. A
  // plain file of that name that we have no history of is taken in as version 1,
  // comment "found on the server". An empty one leaves no trace unless it gets a cut.
  // `page_size_bytes` 0: the option's.
  virtual absl::StatusOr<std::shared_ptr<File>> OpenOrCreateFile(std::string_view name,
                                                                 uint32_t page_size_bytes) = 0;

  // Mirrored files below `directory` ("" is the root), recursively, in byte order of
  // their names, after `after_name`, at most `limit`.
  virtual absl::StatusOr<std::vector<FileSummary>> List(std::string_view directory,
                                                        std::string_view after_name,
                                                        size_t limit) = 0;

  // ---- Names. Each is durable when it returns, and after a crash either done or not begun. The
  // caller has seen to it that nobody writes the file (server/state/lease_table.h). ----

  // Gives a file another name; its history goes with it. Versions that are being read stay
  // readable, as far as they need no more files opened.
  // Errors: kNotFound no such file; kAlreadyExists `new_name` is taken; kInvalidArgument CheckName;
  //         kFailedPrecondition a session writes it.
  virtual absl::Status Move(std::string_view name, std::string_view new_name) = 0;

  // Takes a file and its history out of sight, to be undeleted for `keep`. Takes damaged ones too.
  // Errors: as Move().
  virtual absl::StatusOr<RemovedFile> Remove(std::string_view name, const Provenance& who,
                                             absl::Duration keep) = 0;

  // Newest removal first.
  virtual absl::StatusOr<std::vector<RemovedFile>> ListRemoved() = 0;

  // Brings a removed file back as `new_name` ("": the name that it had), and returns its name.
  // Errors: kNotFound no such removal, or its retention has ended; kAlreadyExists.
  virtual absl::StatusOr<std::string> Undelete(std::string_view removal_id,
                                               std::string_view new_name) = 0;

  // Removes for good what expired at `now` or before, and returns how many files.
  virtual absl::StatusOr<int> PurgeRemoved(absl::Time now) = 0;

  // Files that were compared with their local file at some time (File::RecordCheck), as far as they
  // have not been renamed since. Only a hint; FileInfo says when and how.
  virtual absl::StatusOr<std::vector<std::string>> CheckedFiles() = 0;

  // ---- Costs ----

  // What a file's history takes, as its directory says; the file is not opened. kNotFound.
  virtual absl::StatusOr<HistorySizes> Measure(std::string_view name, WithHead with_head) = 0;
  // Files whose prune was begun and is not done: it is under way, was given up, or met a crash.
  // Only a hint; StartPrune() with no versions goes on with it.
  virtual absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() = 0;
  // From now on commits of `name` ("": of all files) make no version, but for a file's first one:
  // their cuts become durable and are applied as ever, and the first commit after ResumeHistory()
  // makes a version of all. Not kept when the store closes.
  virtual void StopHistory(std::string_view name) = 0;
  virtual void ResumeHistory(std::string_view name) = 0;

  // Without background_threads: does one piece of the work that is due; false where there is none.
  virtual bool RunBackground() { return false; }

  // 16 random bytes made by Open().
  virtual const std::array<uint8_t, 16>& incarnation() const = 0;

  // Bytes that count against memory_max_bytes now.
  virtual uint64_t memory_used_bytes() const = 0;
  // What is left for whoever is no administrator. An error where nobody can tell.
  virtual absl::StatusOr<uint64_t> FreeDiskBytes() const = 0;
  // Of the root's file system, all of it; 0: unknown.
  virtual uint64_t disk_bytes() const = 0;
};

// Whether `name` may name a file under a root: relative, '/' separated, UTF-8, 1..4096
// bytes, components of 1..247 bytes that are neither "." nor ".." nor end in ".h5m", no
// NUL, no control characters. kInvalidArgument names what is wrong. (Symlinks out of the
// root are refused by OpenFile, with openat2-style resolution.)
absl::Status CheckName(std::string_view name);

// Whether `tag` may name a version: 1..100 bytes, ASCII letters, digits, '.', '_' and '-', not
// digits alone. kInvalidArgument says what is wrong.
absl::Status CheckTag(std::string_view tag);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_H_
