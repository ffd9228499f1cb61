// The store of one server: all files under a root, each with its head and its history. The bytes on
// disk: docs/reference/format.md. The words: docs/reference/glossary.md.
#ifndef H5MIRROR_ONION_STORE_STORE_H_
#define H5MIRROR_ONION_STORE_STORE_H_

#include <array>
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
#include "onion_store/object_store.h"

namespace h5mirror::store {

// How pages of older versions are saved from now on. Pages that were saved before stay as they are.
enum class PageCompression : uint8_t { kNone, kZstd };

// Who may use a head besides the user that the store runs as: docs/design/040-rights-and-audit.md.
enum class HeadOwner : uint8_t {
  // A new head gets the local file's mode under the umask, and keeps that.
  kServer,
  // The same, and the user who made the file may read it, by an access list. Each session takes
  // from group and others what its local file does not give them.
  kAcl,
};

struct StoreOptions {
  std::filesystem::path root;
  // For all files together: the index of staged pages, buffers of apply and of readers. Beyond
  // this the store spills to its files, or refuses with kResourceExhausted.
  uint64_t memory_max_bytes = uint64_t{256} << 20;
  // For new files: a power of two, 512..65536.
  uint32_t page_size_bytes = 4096;
  PageCompression page_compression = PageCompression::kZstd;
  // The longest time from a cut (a tick) until it is durable.
  absl::Duration durable_every = absl::Seconds(10);
  // Heads get the local file's mode under this umask. Histories are 0600, their directories 0700.
  uint32_t umask_bits = 0027;
  // Group of heads; empty: the process's own.
  std::string group;
  HeadOwner owner_of_heads = HeadOwner::kServer;
  // How many bytes of the disk the pinned cuts of one file may take. Beyond this the oldest expire.
  uint64_t snapshot_max_bytes = uint64_t{1} << 30;
  // A segment of the stage that would grow beyond this is followed by a new one.
  uint64_t stage_segment_bytes = uint64_t{64} << 30;
  // Threads that make cuts durable, and as many that apply them; more where some hang. 1: one
  // thread does both. 0: Store::RunBackground() does this work.
  int background_threads = 2;
  // Where segments of saved pages may go (File::StartArchive()); null: nowhere. One archive serves
  // one root.
  std::shared_ptr<ObjectStore> archive = nullptr;
};

// One row of List().
struct FileSummary {
  std::string name;
  uint64_t size_bytes = 0;
  absl::Time modify_time;
};

// A file that was removed and can be undeleted.
struct RemovedFile {
  std::string id;  // of the removal: a name can be removed more than once
  std::string name;
  absl::Time removed;
  absl::Time expires;
  uint64_t disk_bytes = 0;  // of head and history, holes included
  // Without holes, as HistorySizes; 0: not known.
  uint64_t head_bytes = 0;
  uint64_t history_bytes = 0;
  uint64_t tags = 0;  // of its versions; 0 also where they are not known
  Provenance who;     // of the removal: users, host, program, pid
  std::string owner;  // of the file, "unix:anna"; empty: it has none
};

// The arguments of Fork().
struct ForkRequest {
  Provenance provenance;  // comment empty: "fork of NAME@VERSION"
  std::array<uint8_t, 16> request_id{};
  // Of the new file: its owner, and who may read its head. `mode_bits` is not looked at: the head
  // gets the mode that the other file's has.
  LocalAccess access = {};
  IsCancelled is_cancelled = nullptr;
};

// Thread-safe. Locks the root while it lives.
class Store {
 public:
  // Locks the root. A file is recovered when it is first opened; a background pass opens the files
  // that a crash left unclean. `env` must outlive the store.
  //
  // Errors: kNotFound            the root does not exist.
  //         kFailedPrecondition  another process serves the root, or the root has a newer format
  //                              (the message names both).
  //         kPermissionDenied    the root cannot be written.
  static absl::StatusOr<std::unique_ptr<Store>> Open(Env& env, StoreOptions options);

  // Makes every cut durable, then applies as much as fits into `deadline`; an apply stops between
  // two rounds. Sessions must have ended. OK also where durable cuts are left to apply: the next
  // start goes on with them, and until then the head may hold a part of one. An error: a cut could
  // not be made durable. The destructor calls this with 5 s.
  virtual absl::Status Close(absl::Duration deadline) = 0;

  virtual ~Store() = default;

  // Called for every new cut of every file, by the thread that made the cut, with no lock held. It
  // must not wait, nor call the store. Null: no call begins after this has returned.
  using CutListener = std::function<void(const std::string& name, CutNumber cut)>;
  virtual void SetCutListener(CutListener listener) = 0;

  // Opens a file, and recovers it if a crash left it unclean. All callers share one object of a
  // file.
  //
  // Errors: kInvalidArgument  the name leaves the root or is not one of ours (CheckName).
  //         kNotFound         no such file.
  //         kDataLoss         head or history of this file are damaged beyond recovery.
  virtual absl::StatusOr<std::shared_ptr<File>> OpenFile(std::string_view name) = 0;

  // As OpenFile(), and makes an empty file (no version, no head) where there is none. A plain file
  // of that name without a history becomes version 1, comment "found on the server". An empty file
  // leaves no trace unless it gets a cut. `page_size_bytes` 0: the option's.
  virtual absl::StatusOr<std::shared_ptr<File>> OpenOrCreateFile(std::string_view name,
                                                                 uint32_t page_size_bytes) = 0;

  // Makes a new file `new_name`, whose version 1 has the content of `version` (0: the newest) of
  // `source`, a file of this store. The two share nothing that either could change. Durable when it
  // returns. `request_id` makes a repeat harmless. The source may be written meanwhile. The caller
  // makes sure that no session writes the new name.
  // Errors: kInvalidArgument  as OpenOrCreateFile().
  //         kAlreadyExists    the name is taken.
  //         kCancelled        as IsCancelled says; nothing was made.
  //         kResourceExhausted  the disk is full. It is looked at before anything is made: unless
  //                             blocks can be shared, all bytes of the version must fit.
  //         those of File::OpenVersion() and of reading it.
  virtual absl::StatusOr<VersionInfo> Fork(File& /*source*/, VersionNumber /*version*/,
                                           std::string_view /*new_name*/, const ForkRequest&) {
    return absl::UnimplementedError("this store makes no forks");
  }

  // At most `limit` mirrored files below `directory` ("": the root), recursively, in byte order of
  // their names, from the first name after `after_name` on. Directories below that this process may
  // not read are left out.
  virtual absl::StatusOr<std::vector<FileSummary>> List(std::string_view directory,
                                                        std::string_view after_name,
                                                        size_t limit) = 0;

  // File::Info() of a file that List() has just told of, for a look at very many. It has no
  // version_count and no tags, and last_check only where `local` is not known. A closed file is
  // opened only if it was opened or changed since the last look. Errors: as OpenFile().
  virtual absl::StatusOr<FileInfo> Glance(const FileSummary& listed) {
    const auto file = OpenFile(listed.name);
    if (!file.ok()) return file.status();
    return (*file)->Info();
  }

  // ---- Names. Each call is durable when it returns, and after a crash either done or not begun.
  // The caller makes sure that no session writes the file (server/state/lease_table.h). ----

  // Gives a file another name; its history goes with it. A version that is being read stays
  // readable as long as its reader needs to open no more files.
  // Errors: kNotFound            no such file.
  //         kAlreadyExists       `new_name` is taken.
  //         kInvalidArgument     as CheckName().
  //         kFailedPrecondition  a session writes the file.
  virtual absl::Status Move(std::string_view name, std::string_view new_name) = 0;

  // Takes a file and its history out of sight, also a damaged one. For the time `keep` it can be
  // undeleted. Errors: as Move().
  virtual absl::StatusOr<RemovedFile> Remove(std::string_view name, const Provenance& who,
                                             absl::Duration keep) = 0;

  // Newest removal first.
  virtual absl::StatusOr<std::vector<RemovedFile>> ListRemoved() = 0;

  // Brings a removed file back as `new_name` ("": its former name), and returns its name.
  // Errors: kNotFound       no such removal, or its time has ended.
  //         kAlreadyExists  the name is taken.
  virtual absl::StatusOr<std::string> Undelete(std::string_view removal_id,
                                               std::string_view new_name) = 0;

  // Deletes the removed files that expired at `now` or before. Returns how many.
  virtual absl::StatusOr<int> PurgeRemoved(absl::Time now) = 0;

  // Deletes one removed file, before its time ends. Of this and an Undelete() of the same file one
  // is first, and the other gets kNotFound.
  virtual absl::Status PurgeOneRemoved(std::string_view removal_id) = 0;

  // Names of the files that were compared with their local file (File::RecordCheck) and not renamed
  // since. Only a hint; FileInfo has the result.
  virtual absl::StatusOr<std::vector<std::string>> CheckedFiles() = 0;

  // ---- Owners. The session that makes a file gives it one (LocalAccess::owner). It stays with the
  // file: over all versions, when the file is moved, removed and brought back. ----

  // Whose the file of that name is. Opens nothing: an open file answers from memory, another by its
  // directory, or by what was read of that before. A file that is being made is there from the
  // begin of its session on, unless that goes without a cut.
  virtual absl::StatusOr<FileOwner> OwnerOf(std::string_view) {
    return absl::UnimplementedError("this store knows no owners");
  }
  // Called when a name has got another file or owner, or none any more, by the thread that did it,
  // with no lock held. It may call OwnerOf(), and end what uses the file. Null: no call begins
  // after this has returned.
  using OwnerListener = std::function<void(const std::string& name)>;
  virtual void SetOwnerListener(OwnerListener) {}

  // ---- Costs ----

  // The sizes of a file's history, by its directory; the file is not opened. kNotFound.
  virtual absl::StatusOr<HistorySizes> Measure(std::string_view name, WithHead with_head) = 0;
  // Names of the files with a prune that is under way, was given up or met a crash. Only a hint;
  // StartPrune() with no versions goes on with it.
  virtual absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() = 0;
  // From now on commits of `name` ("": of all files) make no version, except a file's first one.
  // Their cuts become durable and are applied as ever. The first commit after ResumeHistory() makes
  // a version of it all. Forgotten when the store closes.
  virtual void StopHistory(std::string_view name) = 0;
  virtual void ResumeHistory(std::string_view name) = 0;

  // Without background_threads: does one piece of the work that is due. False: no work is due.
  virtual bool RunBackground() { return false; }

  // 16 random bytes made by Open().
  virtual const std::array<uint8_t, 16>& incarnation() const = 0;

  // The bytes that count against memory_max_bytes now.
  virtual uint64_t memory_used_bytes() const = 0;
  // Free bytes of the root's file system, for users other than root. An error: unknown.
  virtual absl::StatusOr<uint64_t> FreeDiskBytes() const = 0;
  // The size of the root's file system; 0: unknown.
  virtual uint64_t disk_bytes() const = 0;
};

// OK: `name` may name a file under a root. It is relative, '/' separated, UTF-8, 1..4096 bytes,
// without control characters or NUL. Each component has 1..247 bytes, is neither "." nor "..", and
// does not end in ".h5m". kInvalidArgument: the message says which rule is broken. (OpenFile()
// refuses symlinks out of the root, as openat2() does.)
absl::Status CheckName(std::string_view name);

// OK: `tag` may name a version. It has 1..100 bytes, ASCII letters, digits, '.', '_' and '-', and
// is not digits alone. kInvalidArgument: the message says which rule is broken.
absl::Status CheckTag(std::string_view tag);

// OK: `owner` may own a file. It is "KIND:NAME", of 3..200 bytes, without '/' and control
// characters. kInvalidArgument: the message says what it looks like.
absl::Status CheckOwner(std::string_view owner);

// Store::OwnerOf() by a look at the root alone, which changes nothing: beside a store too. A head
// without a history is a file without an owner.
absl::StatusOr<FileOwner> ReadOwner(EnvTree& tree, std::string_view name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_H_
