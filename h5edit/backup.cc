#include "h5edit/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/put_back.h"

namespace h5mirror::edit {
namespace {

std::filesystem::path DirectoryOf(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

absl::StatusOr<std::unique_ptr<EnvFile>> OpenReal(const std::filesystem::path& real,
                                                  OpenKind kind) {
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(DirectoryOf(real)));
  return tree->Open(real.filename().string(), kind, 0);
}

absl::Status ExistsAlready(const std::filesystem::path& copy, const std::filesystem::path& given) {
  return absl::AlreadyExistsError(
      StrCat("the back-up ", copy.string(),
             " exists already: an edit before this one failed. h5edit --recover ", given.string(),
             " puts it back, h5edit --recover --discard ", given.string(), " removes it"));
}

}  // namespace

absl::Status CopyWhole(EnvFile& from, EnvFile& to) {
  H5M_ASSIGN_OR_RETURN(const uint64_t size, from.Size());
  const absl::Status shared = to.ShareFrom(from);
  // Sharing makes nothing shorter.
  H5M_RETURN_IF_ERROR(to.Truncate(size));
  return shared.ok() || size == 0 ? absl::OkStatus() : to.CopyFrom(from, {0, size});
}

absl::StatusOr<std::unique_ptr<EnvFile>> MakeUnfinished(EnvTree& tree, const std::string& name) {
  tree.Remove(name).IgnoreError();
  H5M_ASSIGN_OR_RETURN(auto file, tree.Open(name, OpenKind::kCreateFresh, 0600));
  H5M_ASSIGN_OR_RETURN(const uint32_t owner, file->Owner());
  if (owner == geteuid()) return file;
  return absl::PermissionDeniedError(
      StrCat("make the copy ", name, ": it is a file of the user ", owner, " there"));
}

std::filesystem::path BackupPathOf(const std::filesystem::path& file) {
  return DirectoryOf(file) / StrCat(".", file.filename().string(), ".bck");
}

absl::Status CheckNoBackup(const std::filesystem::path& given, const std::filesystem::path& real) {
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path copy, FindBackup(given, real));
  return copy.empty() ? absl::OkStatus() : ExistsAlready(copy, given);
}

absl::StatusOr<std::unique_ptr<Backup>> Backup::Make(const std::filesystem::path& given,
                                                     const std::filesystem::path& real,
                                                     Durability durability) {
  const std::filesystem::path path = BackupPathOf(given);
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(path.parent_path()));
  std::unique_ptr<Backup> backup(new Backup(std::move(tree), path, real, durability));
  DropIdleMark(path);
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) return ExistsAlready(path, given);
  const std::string unfinished = StrCat(backup->name_, ".new");
  H5M_ASSIGN_OR_RETURN(auto from, OpenReal(real, OpenKind::kRead));
  H5M_ASSIGN_OR_RETURN(const FileStat stat, from->Stat());
  backup->inode_ = stat.inode;
  H5M_ASSIGN_OR_RETURN(backup->file_, MakeUnfinished(*backup->tree_, unfinished));
  absl::Status made = CopyWhole(*from, *backup->file_);
  if (made.ok()) CopyMetadata(real, path.parent_path() / unfinished);
  if (made.ok()) made = MarkBackup(path, real);
  if (made.ok() && durability == Durability::kDurable) made = backup->file_->Sync();
  if (made.ok()) made = backup->tree_->Link(unfinished, backup->name_);
  backup->tree_->Remove(unfinished).IgnoreError();
  if (!made.ok()) UnmarkBackup(path, real);
  if (absl::IsAlreadyExists(made)) return ExistsAlready(path, given);
  H5M_RETURN_IF_ERROR(made);
  if (durability == Durability::kDurable) H5M_RETURN_IF_ERROR(backup->tree_->SyncDirectory(""));
  return backup;
}

absl::Status Backup::OpenJournal() {
  if (journal_ != nullptr) return absl::OkStatus();
  const absl::Status made = tree_->MakeDirectory(StrCat(name_, ".h5m"), 0700);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  const auto sync = durability_ == Durability::kDurable ? store::JournalSync::kDurable
                                                        : store::JournalSync::kProcess;
  journal_ = std::make_unique<store::CutJournal>(*tree_, name_, sync);
  return absl::OkStatus();
}

absl::Status Backup::Follow(const store::JournalCut& cut) {
  H5M_RETURN_IF_ERROR(OpenJournal());
  store::JournalCut own = cut;
  H5M_ASSIGN_OR_RETURN(const FileStat stat, file_->Stat());
  own.inode = stat.inode;
  return journal_->Commit(*file_, own);
}

absl::Status Backup::Remove() {
  if (journal_ != nullptr) H5M_RETURN_IF_ERROR(journal_->Close());
  tree_->RemoveDirectory(StrCat(name_, ".h5m")).IgnoreError();
  H5M_RETURN_IF_ERROR(tree_->Remove(name_));
  is_removed_ = true;
  UnmarkBackup(path_, real_);
  // A back-up that came back after a power loss would say that the edit had failed.
  return durability_ == Durability::kDurable ? tree_->SyncDirectory("") : absl::OkStatus();
}

void Backup::Leave() { utimensat(AT_FDCWD, path_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

absl::Status Backup::PutBack(const std::filesystem::path& real) {
  H5M_ASSIGN_OR_RETURN(auto to, OpenReal(real, OpenKind::kWrite));
  H5M_ASSIGN_OR_RETURN(const FileStat stat, to->Stat());
  if (stat.inode != inode_) {
    return absl::FailedPreconditionError(
        StrCat(real.string(), " was replaced while it was edited: the file that has its name now ",
               "is left alone"));
  }
  H5M_RETURN_IF_ERROR(CopyWhole(*file_, *to));
  return to->Sync();  // Whatever was asked for: there is no other copy.
}

absl::Status SettleBackup(const std::filesystem::path& copy) {
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(copy.parent_path()));
  const std::string name = copy.filename().string();
  H5M_RETURN_IF_ERROR(store::SettleJournal(*tree, name, store::JournalWay::kForwardAsked));
  tree->Remove(StrCat(name, ".h5m/open")).IgnoreError();
  tree->RemoveDirectory(StrCat(name, ".h5m")).IgnoreError();
  tree->Remove(StrCat(name, ".new")).IgnoreError();  // A copy that was not finished.
  return absl::OkStatus();
}

}  // namespace h5mirror::edit
