#include "tools/h5edit/backup.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::edit {
namespace {

std::filesystem::path DirectoryOf(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// Blocks are shared where the disk can.
absl::Status CopyWhole(EnvFile& from, EnvFile& to) {
  const absl::Status shared = to.ShareFrom(from);
  if (shared.ok()) return shared;
  H5M_ASSIGN_OR_RETURN(const uint64_t size, from.Size());
  H5M_RETURN_IF_ERROR(to.Truncate(size));
  return size == 0 ? absl::OkStatus() : to.CopyFrom(from, {0, size});
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

std::filesystem::path BackupPathOf(const std::filesystem::path& file) {
  return DirectoryOf(file) / StrCat(".", file.filename().string(), ".bck");
}

absl::Status CheckNoBackup(const std::filesystem::path& given, const std::filesystem::path& real) {
  struct stat there {};
  for (const std::filesystem::path& name : {given, real}) {
    const std::filesystem::path copy = BackupPathOf(name);
    if (lstat(copy.c_str(), &there) == 0) return ExistsAlready(copy, name);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backup>> Backup::Make(const std::filesystem::path& given,
                                                     const std::filesystem::path& real,
                                                     Durability durability) {
  const std::filesystem::path path = BackupPathOf(given);
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(path.parent_path()));
  std::unique_ptr<Backup> backup(new Backup(std::move(tree), path.filename().string(), durability));
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) return ExistsAlready(path, given);
  const std::string unfinished = StrCat(backup->name_, ".new");
  H5M_ASSIGN_OR_RETURN(auto from, OpenReal(real, OpenKind::kRead));
  H5M_ASSIGN_OR_RETURN(backup->file_,
                       backup->tree_->Open(unfinished, OpenKind::kCreateFresh, 0600));
  absl::Status made = CopyWhole(*from, *backup->file_);
  struct stat mode {};
  if (made.ok() && stat(real.c_str(), &mode) == 0)
    made = backup->file_->SetMode(mode.st_mode & 0777, -1);
  if (made.ok() && durability == Durability::kDurable) made = backup->file_->Sync();
  if (made.ok()) made = backup->tree_->Link(unfinished, backup->name_);
  backup->tree_->Remove(unfinished).IgnoreError();
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
  return tree_->Remove(name_);
}

absl::Status Backup::PutBack(const std::filesystem::path& real) {
  H5M_ASSIGN_OR_RETURN(auto to, OpenReal(real, OpenKind::kWrite));
  H5M_RETURN_IF_ERROR(CopyWhole(*file_, *to));
  H5M_RETURN_IF_ERROR(to->Sync());  // Whatever was asked for: there is no other copy.
  return Remove();
}

absl::Status MoveBackupBack(const std::filesystem::path& given, const std::filesystem::path& real) {
  const std::filesystem::path copy = BackupPathOf(given);
  struct stat st {};
  if (stat(real.c_str(), &st) != 0) return ErrnoToStatus(errno, StrCat("stat ", real.string()));
  if (st.st_nlink > 1) {
    return absl::FailedPreconditionError(
        StrCat(real.string(), " has ", st.st_nlink,
               " names (hard links), of which only this one would be put back: copy ",
               copy.string(), " over it"));
  }
  H5M_ASSIGN_OR_RETURN(auto to, Env::Posix().OpenTree(DirectoryOf(real)));
  const auto lock = to->Lock(real.filename().string(), LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::UnavailableError(
        StrCat("cannot put ", real.string(), " back: another program has it open"));
  }
  H5M_ASSIGN_OR_RETURN(auto from, Env::Posix().OpenTree(copy.parent_path()));
  H5M_ASSIGN_OR_RETURN(auto file, from->Open(copy.filename().string(), OpenKind::kRead, 0));
  H5M_RETURN_IF_ERROR(file->Sync());
  if (rename(copy.c_str(), real.c_str()) != 0)
    return ErrnoToStatus(errno, StrCat("move ", copy.string(), " to ", real.string()));
  H5M_RETURN_IF_ERROR(to->SyncDirectory(""));
  return from->SyncDirectory("");
}

absl::Status SettleBackup(const std::filesystem::path& given) {
  const std::filesystem::path path = BackupPathOf(given);
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(path.parent_path()));
  const std::string name = path.filename().string();
  H5M_RETURN_IF_ERROR(store::SettleJournal(*tree, name, store::JournalWay::kForwardAsked));
  tree->Remove(StrCat(name, ".h5m/open")).IgnoreError();
  tree->RemoveDirectory(StrCat(name, ".h5m")).IgnoreError();
  tree->Remove(StrCat(name, ".new")).IgnoreError();  // A copy that was not finished.
  return absl::OkStatus();
}

}  // namespace h5mirror::edit
