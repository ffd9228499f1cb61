#include "onion_store/restore_root.h"

#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/jobs/file_restore.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/shared/token_source.h"

namespace h5mirror::store {
namespace {

constexpr char kOwn[] = ".h5mirror";
constexpr char kLock[] = ".h5mirror/lock";
constexpr char kMark[] = ".h5mirror/restoring";
constexpr char kFreshMark[] = ".h5mirror/restoring.new";
constexpr char kAside[] = ".h5mirror/restore";
constexpr size_t kMarkBytesMax = 128;

absl::Status WriteDurably(EnvTree& tree, const std::string& fresh, const std::string& name,
                          std::string_view bytes) {
  {
    H5M_ASSIGN_OR_RETURN(const auto file, tree.Open(fresh, OpenKind::kCreateFresh, 0600));
    H5M_RETURN_IF_ERROR(WriteAt(*file, 0, bytes));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, name));
  return tree.SyncDirectory(kOwn);
}

// The id of the archive that a restore was begun for; kNotFound.
absl::StatusOr<std::string> ReadMark(EnvTree& tree) {
  H5M_ASSIGN_OR_RETURN(const auto file, tree.Open(kMark, OpenKind::kRead, 0));
  std::string text(kMarkBytesMax, '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, absl::MakeSpan(text)));
  return text.substr(0, std::min(got, text.find('\n')));
}

absl::Status NotEmpty(const std::filesystem::path& root, const std::string& what) {
  return absl::FailedPreconditionError(
      StrCat(root.string(), " is not empty, it has ", what, ": name an empty directory"));
}

// Whether a restore may begin here, or go on. True: it was begun.
absl::StatusOr<bool> CheckRoot(EnvTree& tree, const std::filesystem::path& root,
                               const std::string& archive_id) {
  const auto mark = ReadMark(tree);
  if (mark.ok()) {
    if (archive_id.empty() || *mark == archive_id) return true;
    return absl::FailedPreconditionError(StrCat(root.string(),
                                                " is being restored from the archive ", *mark,
                                                ", and this is ", archive_id));
  }
  if (!absl::IsNotFound(mark.status())) return mark.status();
  if (archive_id.empty()) return NotEmpty(root, "what no restore has begun");
  H5M_ASSIGN_OR_RETURN(const auto entries, tree.List(""));
  for (const DirectoryEntry& entry : entries) {
    // A file system has the one; a crash before the mark leaves the other, with a lock in it.
    if (entry.name != "lost+found" && entry.name != kOwn) return NotEmpty(root, entry.name);
  }
  const auto own = tree.List(kOwn);
  if (absl::IsNotFound(own.status())) return false;
  H5M_RETURN_IF_ERROR(own.status());
  for (const DirectoryEntry& entry : *own) {
    const std::string name = StrCat(kOwn, "/", entry.name);
    if (name != kLock && name != kFreshMark) return NotEmpty(root, name);
  }
  return false;
}

class RootRestoreImpl final : public RootRestore {
 public:
  RootRestoreImpl(Env& env, std::unique_ptr<EnvTree> tree, std::unique_ptr<EnvLock> lock)
      : env_(env), tree_(std::move(tree)), lock_(std::move(lock)), vfs_(*tree_) {}

  absl::StatusOr<bool> Restore(ObjectStore& archive, const RestorableFile& file,
                               const RestoreOptions& options) override {
    H5M_RETURN_IF_ERROR(file.status);
    H5M_ASSIGN_OR_RETURN(const bool is_done, tree_->Exists(StrCat(file.name, ".h5m/index")));
    if (is_done) return false;
    auto copy = GetCopyList(archive, file.prefix);
    if (absl::IsNotFound(copy.status())) {
      return absl::UnavailableError(
          StrCat(file.prefix, ": the copy has gone since it was listed: try again"));
    }
    H5M_RETURN_IF_ERROR(copy.status());
    const absl::Status made = tree_->MakeDirectory(kAside, 0700);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    FileRestore restore(*tree_, vfs_, kAside, archive, options);
    const absl::Status restored = restore.Run(*copy, file.name);
    if (restored.ok()) return true;
    // A store would take a part of a head for a file that it does not know yet.
    H5M_RETURN_IF_ERROR(Discard(file.name));
    return restored;
  }

  absl::Status End() override {
    for (const char* suffix : {"/index", "/index-wal", "/index-journal"}) {
      const absl::Status removed = tree_->Remove(StrCat(kAside, suffix));
      if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    }
    const absl::Status removed = tree_->RemoveDirectory(kAside);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    // Beyond all that the lost root may have given: there was less than one in a microsecond.
    std::string tokens;
    PutInt<uint64_t>(&tokens, static_cast<uint64_t>(absl::ToUnixMicros(env_.Now())));
    PutInt<uint32_t>(&tokens, Crc32c(tokens));
    H5M_RETURN_IF_ERROR(WriteDurably(*tree_, StrCat(TokenSource::kFileName, ".new"),
                                     TokenSource::kFileName, tokens));
    H5M_RETURN_IF_ERROR(tree_->Remove(kMark));
    return tree_->SyncDirectory(kOwn);
  }

 private:
  // Removes what there is of a file that was not rebuilt. kInternal: it is there still.
  absl::Status Discard(const std::string& name) {
    const std::string history = StrCat(name, ".h5m");
    const auto entries = tree_->List(history);
    if (absl::IsNotFound(entries.status())) return absl::OkStatus();  // The head comes later.
    H5M_RETURN_IF_ERROR(entries.status());
    absl::Status removed = tree_->Remove(name);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    for (const DirectoryEntry& entry : *entries) {
      H5M_RETURN_IF_ERROR(tree_->Remove(StrCat(history, "/", entry.name)));
    }
    return tree_->RemoveDirectory(history);
  }

  Env& env_;
  const std::unique_ptr<EnvTree> tree_;
  const std::unique_ptr<EnvLock> lock_;
  const SqliteVfs vfs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RootRestore>> RootRestore::Begin(Env& env,
                                                                const std::filesystem::path& root,
                                                                const std::string& archive_id) {
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree(root));
  H5M_RETURN_IF_ERROR(CheckRoot(*tree, root, archive_id).status());
  const absl::Status made = tree->MakeDirectory(kOwn, 0700);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  auto lock = tree->Lock(kLock, LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(StrCat(root.string(), " is used by another process"));
  }
  H5M_RETURN_IF_ERROR(lock.status());
  // Another one may have been here before the lock was ours.
  H5M_ASSIGN_OR_RETURN(const bool has_begun, CheckRoot(*tree, root, archive_id));
  if (!has_begun) {
    H5M_RETURN_IF_ERROR(WriteDurably(*tree, kFreshMark, kMark, StrCat(archive_id, "\n")));
    H5M_RETURN_IF_ERROR(tree->SyncDirectory(""));
  }
  return std::make_unique<RootRestoreImpl>(env, std::move(tree), *std::move(lock));
}

absl::Status CheckNotBeingRestored(EnvTree& tree) {
  H5M_ASSIGN_OR_RETURN(const bool is_begun, tree.Exists(kMark));
  if (!is_begun) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("this root is restored in part only, as ", kMark,
             " says: run h5mirrord restore-root again, until it ends with 0"));
}

}  // namespace h5mirror::store
