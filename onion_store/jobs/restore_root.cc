#include "onion_store/restore_root.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/index/version_index.h"
#include "onion_store/jobs/file_restore.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/shared/token_source.h"
#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

constexpr char kOwn[] = ".h5mirror";
constexpr char kLock[] = ".h5mirror/lock";
constexpr char kMark[] = ".h5mirror/restoring";
constexpr char kFreshMark[] = ".h5mirror/restoring.new";
constexpr char kAside[] = ".h5mirror/restore";
// The name of the file that is being rebuilt. Durable before anything of the file is there.
constexpr char kUnderWay[] = ".h5mirror/restore/file";
constexpr char kFreshUnderWay[] = ".h5mirror/restore/file.new";
constexpr size_t kMarkBytesMax = 128;
constexpr size_t kUnderWayBytesMax = 8192;  // longer than any name
// The most tries for a copy that is replaced again and again while it is read.
constexpr int kTriesMax = 5;

std::string ParentOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == name.npos ? "" : name.substr(0, slash);
}

absl::Status UnlessNotFound(absl::Status status) {
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status WriteDurably(EnvTree& tree, const std::string& fresh, const std::string& name,
                          std::string_view bytes) {
  {
    H5M_ASSIGN_OR_RETURN(const auto file, tree.Open(fresh, OpenKind::kCreateFresh, 0600));
    H5M_RETURN_IF_ERROR(WriteAt(*file, 0, bytes));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, name));
  return tree.SyncDirectory(ParentOf(name));
}

absl::StatusOr<std::string> ReadSmall(EnvTree& tree, const char* name, size_t bytes_max) {
  H5M_ASSIGN_OR_RETURN(const auto file, tree.Open(name, OpenKind::kRead, 0));
  std::string text(bytes_max, '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, absl::MakeSpan(text)));
  return text.substr(0, got);
}

// The id of the archive that a restore was begun for; kNotFound.
absl::StatusOr<std::string> ReadMark(EnvTree& tree) {
  H5M_ASSIGN_OR_RETURN(std::string text, ReadSmall(tree, kMark, kMarkBytesMax));
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return text;
}

absl::Status NotEmpty(const std::filesystem::path& root, const std::string& what) {
  return absl::FailedPreconditionError(
      StrCat(root.string(), " is not empty, it has ", what, ": name an empty directory"));
}

// Whether a restore may begin or continue here. True: one was begun.
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
    // A file system has lost+found. A crash before the mark leaves kOwn, with a lock in it.
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

  absl::StatusOr<bool> Restore(ObjectStore& archive, const RestoreOptions& options,
                               RestorableFile* file) override {
    H5M_RETURN_IF_ERROR(file->status);
    const std::string history = StrCat(file->name, ".h5m");
    H5M_ASSIGN_OR_RETURN(const bool is_there, tree_->Exists(StrCat(history, "/index")));
    if (is_there) {
      H5M_RETURN_IF_ERROR(CheckIsIt(*file, history));
      // The run that gave the index its name may have ended before the name was durable.
      H5M_RETURN_IF_ERROR(tree_->SyncDirectory(history));
      return false;
    }
    // Else the name of a file that could not be discarded would be forgotten.
    H5M_RETURN_IF_ERROR(DiscardUnderWay());
    H5M_RETURN_IF_ERROR(NoteUnderWay(file->name));
    absl::Status restored;
    for (int i = 0; i < kTriesMax; ++i) {
      H5M_RETURN_IF_ERROR(Discard(file->name));
      restored = RestoreCopy(archive, options, file);
      if (!absl::IsDataLoss(restored) && !absl::IsNotFound(restored)) break;
      // A living server may have put a newer copy, and deleted objects of this one.
      H5M_ASSIGN_OR_RETURN(const bool is_newer, FindNewer(archive, file));
      if (!is_newer) break;
    }
    if (restored.ok()) return true;
    // A store would take a partial head for a file that it does not know yet.
    H5M_RETURN_IF_ERROR(Discard(file->name));
    return restored;
  }

  // Removes what an earlier run, which was killed, has left of a file.
  absl::Status DiscardUnderWay() {
    const auto name = ReadSmall(*tree_, kUnderWay, kUnderWayBytesMax);
    if (absl::IsNotFound(name.status())) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(name.status());
    H5M_RETURN_IF_ERROR(CheckName(*name));
    H5M_ASSIGN_OR_RETURN(const bool is_there, tree_->Exists(StrCat(*name, ".h5m/index")));
    if (!is_there) return Discard(*name);
    return tree_->SyncDirectory(StrCat(*name, ".h5m"));
  }

  absl::Status End() override {
    H5M_RETURN_IF_ERROR(DiscardUnderWay());
    for (const char* suffix : {"/index", "/index-wal", "/index-journal", "/file.new", "/file"}) {
      H5M_RETURN_IF_ERROR(UnlessNotFound(tree_->Remove(StrCat(kAside, suffix))));
    }
    H5M_RETURN_IF_ERROR(UnlessNotFound(tree_->RemoveDirectory(kAside)));
    // Beyond all tokens that the lost root may have given: it gave less than one in a microsecond.
    std::string tokens;
    PutInt<uint64_t>(&tokens, static_cast<uint64_t>(absl::ToUnixMicros(env_.Now())));
    PutInt<uint32_t>(&tokens, Crc32c(tokens));
    H5M_RETURN_IF_ERROR(WriteDurably(*tree_, StrCat(TokenSource::kFileName, ".new"),
                                     TokenSource::kFileName, tokens));
    H5M_RETURN_IF_ERROR(tree_->Remove(kMark));
    return tree_->SyncDirectory(kOwn);
  }

 private:
  absl::Status RestoreCopy(ObjectStore& archive, const RestoreOptions& options,
                           RestorableFile* file) {
    H5M_ASSIGN_OR_RETURN(const FileCopy copy, GetCopyList(archive, file->prefix));
    FileRestore restore(*tree_, vfs_, kAside, archive, options);
    H5M_RETURN_IF_ERROR(restore.Run(copy, file->name));
    file->lost_bytes = restore.lost_bytes();
    return absl::OkStatus();
  }

  // Whether the file has a newer copy by now; `file` then describes that one, under the same name.
  static absl::StatusOr<bool> FindNewer(ObjectStore& archive, RestorableFile* file) {
    H5M_ASSIGN_OR_RETURN(RestorableFile newest, FindRestorable(archive, file->file_id));
    if (!newest.status.ok() || newest.prefix == file->prefix) return false;
    newest.name = file->name;
    *file = std::move(newest);
    return true;
  }

  // kAlreadyExists: another file has the name.
  absl::Status CheckIsIt(const RestorableFile& file, const std::string& history) {
    H5M_ASSIGN_OR_RETURN(const auto index, VersionIndex::Open(vfs_, *tree_, history));
    H5M_ASSIGN_OR_RETURN(const FileRow row, index->ReadFileRow());
    if (row.file_id == file.file_id) return absl::OkStatus();
    return absl::AlreadyExistsError(
        StrCat(file.name,
               ": an earlier run restored another file of this name, as the archive has changed",
               " meanwhile: begin in another empty directory"));
  }

  absl::Status NoteUnderWay(const std::string& name) {
    const absl::Status made = tree_->MakeDirectory(kAside, 0700);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    H5M_RETURN_IF_ERROR(tree_->SyncDirectory(kOwn));
    return WriteDurably(*tree_, kFreshUnderWay, kUnderWay, name);
  }

  // Removes, durably, all parts of a file that was not rebuilt to the end. kInternal: some are
  // still there.
  absl::Status Discard(const std::string& name) {
    const std::string history = StrCat(name, ".h5m");
    const auto entries = tree_->List(history);
    if (absl::IsNotFound(entries.status())) return absl::OkStatus();  // The head comes later.
    H5M_RETURN_IF_ERROR(entries.status());
    H5M_RETURN_IF_ERROR(UnlessNotFound(tree_->Remove(name)));
    for (const DirectoryEntry& entry : *entries) {
      H5M_RETURN_IF_ERROR(tree_->Remove(StrCat(history, "/", entry.name)));
    }
    // Else a power loss could bring the head back alone.
    H5M_RETURN_IF_ERROR(tree_->SyncDirectory(ParentOf(name)));
    H5M_RETURN_IF_ERROR(tree_->RemoveDirectory(history));
    return tree_->SyncDirectory(ParentOf(name));
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
  // Another run may have come before this one got the lock.
  H5M_ASSIGN_OR_RETURN(const bool has_begun, CheckRoot(*tree, root, archive_id));
  if (!has_begun) {
    H5M_RETURN_IF_ERROR(WriteDurably(*tree, kFreshMark, kMark, StrCat(archive_id, "\n")));
    H5M_RETURN_IF_ERROR(tree->SyncDirectory(""));
  }
  auto restore = std::make_unique<RootRestoreImpl>(env, std::move(tree), *std::move(lock));
  H5M_RETURN_IF_ERROR(restore->DiscardUnderWay());
  return restore;
}

absl::Status CheckNotBeingRestored(EnvTree& tree) {
  H5M_ASSIGN_OR_RETURN(const bool is_begun, tree.Exists(kMark));
  if (!is_begun) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("this root is restored in part only, as ", kMark,
             " says: run h5mirrord restore-root again, until it ends with 0"));
}

}  // namespace h5mirror::store
