#include "h5edit/session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/env.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/superblock.h"
#include "h5edit/beside.h"
#include "h5edit/edit_driver.h"
#include "h5edit/recovery.h"
#include "hdf5/byte_driver.h"
#include "onion_store/embedded/embedded_store.h"
#include "sync/local_superblock.h"

namespace h5mirror::edit {
namespace {

// The comment of changes that are sent after an error to servers that were away.
constexpr char kBeforeError[] = "the commands before one that failed";

// Checks the file before anything is made beside it.
absl::Status LookAtFile(const std::filesystem::path& path, Access access) {
  const std::string what = StrCat("cannot open ", path.string());
  const int fd =
      open(path.c_str(), (access == Access::kChanges ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoToStatus(errno, what);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat st {};
  if (fstat(fd, &st) != 0) return ErrnoToStatus(errno, what);
  if (!S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(StrCat(what, ": it is not a plain file"));
  switch (tools::LookAtHdf5(fd, static_cast<uint64_t>(st.st_size))) {
    case Hdf5State::kNotHdf5:
      return absl::InvalidArgumentError(StrCat(what, ": it is not an HDF5 file"));
    case Hdf5State::kOpen:
      if (access != Access::kChanges) return absl::OkStatus();
      return absl::FailedPreconditionError(
          StrCat(what,
                 ": it is marked as open for writing: a program writes it, or died while it did; "
                 "when none does, h5clear -s ",
                 path.string(), " takes the mark away"));
    case Hdf5State::kCutShort:
      return absl::DataLossError(StrCat(what, ": it is shorter than its superblock says"));
    case Hdf5State::kClosed:
      break;
  }
  return absl::OkStatus();
}

// A journal lies beside one name. A program that opens the file by another name does not see it.
absl::Status CheckHasOneName(const std::filesystem::path& real) {
  struct stat st {};
  if (stat(real.c_str(), &st) != 0) return ErrnoToStatus(errno, StrCat("stat ", real.string()));
  if (st.st_nlink == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("cannot open ", real.string(), ": it has ", st.st_nlink,
             " names (hard links), and a program that opens it by another name would not know of "
             "a change that was broken off. Edit a copy of it, or use --atomic no, which changes "
             "it under all of "
             "its names"));
}

// Explains a failed open of a file that itself may be written: the right to write its directory is
// missing.
absl::StatusOr<std::unique_ptr<EditFile>> NeedsDirectory(
    absl::StatusOr<std::unique_ptr<EditFile>> opened, const std::filesystem::path& real) {
  if (!absl::IsPermissionDenied(opened.status())) return opened;
  // At all levels such a file is edited through it.
  if (HasHistory(real)) return opened;
  return absl::PermissionDeniedError(
      StrCat("cannot edit ", real.string(), " so that an error leaves it as it was: that takes a ",
             "journal in its directory (", ToStd(opened.status().message()),
             "). Edit a copy elsewhere, or use --atomic no, which makes nothing beside it"));
}

// A back-up put back beneath a history would make its versions unreadable.
absl::Status CheckKeepsNoHistory(const Options& options, const std::filesystem::path& real) {
  const bool copies = options.copies_backup && options.atomic != Atomic::kNo;
  if (!copies || !HasHistory(real)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("cannot edit ", options.file, " with --backup=copy: it has a history beside it, ",
             "which would not know of the back-up. Without --backup=copy each change becomes a "
             "version, and h5mirror rollback ",
             options.file, "@VERSION takes it back"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Options& options, Access access) {
  std::unique_ptr<Session> session(new Session(options));
  const std::string what = StrCat("cannot open ", options.file);
  std::error_code error;
  session->real_ = std::filesystem::canonical(options.file, error);
  if (error) return absl::NotFoundError(StrCat(what, ": ", error.message()));
  H5M_RETURN_IF_ERROR(access == Access::kLooks ? CheckCanAskBeside(session->real_)
                                               : CheckCanLookBeside(session->real_));
  if (access == Access::kChanges) {
    H5M_RETURN_IF_ERROR(CheckKeepsNoHistory(options, session->real_));
    H5M_RETURN_IF_ERROR(CheckNoBackup(options.file, session->real_));
    H5M_RETURN_IF_ERROR(SettleFile(session->real_));
  } else {
    const absl::Status waits = CheckNoBackup(options.file, session->real_);
    if (access == Access::kTries) H5M_RETURN_IF_ERROR(waits);
    session->notice_ = ToStd(waits.message());
    H5M_RETURN_IF_ERROR(CheckAtRest(session->real_, options.file));
  }
  H5M_RETURN_IF_ERROR(LookAtFile(session->real_, access));
  if (access == Access::kChanges) H5M_RETURN_IF_ERROR(session->OpenMirror());
  H5M_RETURN_IF_ERROR(session->OpenBytes(access));
  if (session->bytes_ != nullptr) {
    H5M_ASSIGN_OR_RETURN(session->file_, OpenOver(*session->bytes_, session->real_.string()));
  } else {
    H5M_ASSIGN_OR_RETURN(const hdf5::Handle fapl, hdf5::Own(H5Pcreate(H5P_FILE_ACCESS), what));
    H5Pset_fclose_degree(fapl.get(), H5F_CLOSE_STRONG);
    H5M_ASSIGN_OR_RETURN(
        session->file_, hdf5::Own(H5Fopen(session->real_.c_str(), H5F_ACC_RDWR, fapl.get()), what));
  }
  // An edit may have begun, and been broken off, before the lock was taken.
  if (access != Access::kChanges) H5M_RETURN_IF_ERROR(CheckAtRest(session->real_, options.file));
  // An edit that this one has waited for may have failed meanwhile, and left its back-up.
  if (access == Access::kChanges) H5M_RETURN_IF_ERROR(CheckNoBackup(options.file, session->real_));
  if (options.copies_backup && access == Access::kChanges && options.atomic != Atomic::kNo) {
    const Durability durability = options.durable ? Durability::kDurable : Durability::kProcess;
    H5M_ASSIGN_OR_RETURN(session->backup_, Backup::Make(options.file, session->real_, durability));
  }
  return session;
}

// Before the file is locked: its mirrors may have to be brought to it first.
absl::Status Session::OpenMirror() {
  if (options_.server.empty() && !IsMirrored(real_)) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(CheckHasOneName(real_));
  if (options_.copies_backup || options_.keep_history) {
    return absl::FailedPreconditionError(
        StrCat("cannot edit ", options_.file, " with ",
               options_.copies_backup ? "--backup=copy" : "--keep-history",
               ": it is mirrored to a server, which keeps its former content as a version"));
  }
  auto mirror = Mirror::Open(real_, options_.server, options_.driver_config);
  if (!mirror.ok()) {
    return absl::Status(mirror.status().code(), StrCat("cannot edit ", options_.file, ": ",
                                                       ToStd(mirror.status().message())));
  }
  mirror_ = *std::move(mirror);
  return absl::OkStatus();
}

absl::Status Session::OpenBytes(Access access) {
  if (access != Access::kChanges) {
    H5M_ASSIGN_OR_RETURN(bytes_, OpenInMemory(real_));
    return absl::OkStatus();
  }
  cuts_each_ = options_.atomic != Atomic::kYes || options_.copies_backup;
  const bool keeps_history = mirror_ == nullptr && (options_.keep_history || HasHistory(real_));
  writes_through_ = !keeps_history && mirror_ == nullptr && options_.atomic == Atomic::kNo;
  if (writes_through_) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(CheckHasOneName(real_));
  if (keeps_history) {
    H5M_ASSIGN_OR_RETURN(bytes_, NeedsDirectory(OpenWithHistory(real_), real_));
    return absl::OkStatus();
  }
  AfterCut after_cut;
  if (options_.copies_backup && options_.atomic == Atomic::kInc) {
    after_cut = [this](const store::JournalCut& cut) {
      const absl::Status followed = backup_->Follow(cut);
      backup_is_behind_ = !followed.ok();
      return followed;
    };
  }
  const Durability durability = options_.durable ? Durability::kDurable : Durability::kProcess;
  H5M_ASSIGN_OR_RETURN(
      bytes_, NeedsDirectory(OpenWithJournal(real_, durability, std::move(after_cut)), real_));
  return absl::OkStatus();
}

absl::Status Session::Done(const std::string& comment) {
  changed_ = true;
  if (bytes_ == nullptr || !cuts_each_) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(
      hdf5::Check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), StrCat("flush ", options_.file)));
  H5M_RETURN_IF_ERROR(bytes_->Cut(comment));
  if (mirror_ != nullptr) mirror_->Commit(comment, Mirror::Moment::kBetween);
  return absl::OkStatus();
}

absl::Status Session::CloseFile() {
  if (!file_.valid()) return absl::OkStatus();
  absl::Status flushed =
      hdf5::Check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), StrCat("flush ", options_.file));
  // The handle's own destructor would not say whether it went well.
  hdf5::Handle file = std::move(file_);
  H5Iinc_ref(file.get());
  const absl::Status closed = hdf5::Check(H5Fclose(file.get()), StrCat("close ", options_.file));
  H5Idec_ref(file.get());
  const absl::Status cause = hdf5::TakeDriverError();
  return !cause.ok() ? cause : flushed.ok() ? closed : flushed;
}

absl::Status Session::Finish(const std::string& comment) {
  H5M_RETURN_IF_ERROR(CloseFile());
  if (bytes_ != nullptr) {
    H5M_RETURN_IF_ERROR(bytes_->Cut(comment));
    finished_ = true;
    if (mirror_ != nullptr) mirror_->Commit(comment, Mirror::Moment::kLast);
    H5M_RETURN_IF_ERROR(bytes_->Close());
    bytes_.reset();
  } else if (options_.durable && changed_) {
    const int fd = open(real_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = fd >= 0 && fdatasync(fd) == 0;
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!synced) return ErrnoToStatus(error, StrCat("sync ", options_.file));
  }
  return backup_ == nullptr ? absl::OkStatus() : backup_->Remove();
}

std::string Session::MirrorLag() const {
  if (mirror_ == nullptr || mirror_->lag().empty()) return "";
  return StrCat(options_.file, ": ", mirror_->lag());
}

std::string Session::WhatIsLeft() const {
  if (bytes_ != nullptr && bytes_->is_between() && HasHistory(real_)) {
    return StrCat("is as it was before the change that failed, or will hold it whole: h5edit ",
                  "--recover ", options_.file, " settles which");
  }
  if (bytes_ != nullptr && bytes_->is_between()) {
    return StrCat("may hold a part of the change that failed: h5edit --recover ", options_.file,
                  " finishes it, h5edit --recover --discard ", options_.file, " takes it back");
  }
  if (finished_) return "holds the changes of all commands";
  if (backup_is_behind_)
    return "holds the change of that command, too, and only its back-up does not";
  const bool moves = cuts_each_ || writes_through_;
  return changed_ && moves ? "holds the changes of the commands before it" : "is as it was before";
}

// A journal that is still there belongs to the present file: Recover() settles it first.
std::string Session::LeaveBackup(const std::string& left, const absl::Status& closed) {
  const std::string copy = BackupPathOf(options_.file).string();
  if (backup_->is_removed())
    return StrCat(left, "; a power loss may bring its back-up ", copy, " back");
  const std::string way = StrCat(": h5edit --recover ", options_.file, " brings it back");
  const bool has_journal = !closed.ok() || (bytes_ != nullptr && bytes_->is_between());
  if (!options_.restores || has_journal || backup_->is_between()) {
    backup_->Leave();
    return StrCat(left, "; the back-up is ", copy, way);
  }
  if (const absl::Status back = backup_->PutBack(real_); !back.ok()) {
    return StrCat("could not be put back (", ToStd(back.message()), "); the back-up is ", copy,
                  way);
  }
  const absl::Status removed = backup_->Remove();
  return removed.ok()
             ? "was put back from the back-up"
             : StrCat("was put back from the back-up, which could not be removed for good (",
                      ToStd(removed.message()), ")");
}

std::string Session::Abandon() {
  CloseFile().IgnoreError();
  std::string left = WhatIsLeft();
  if (mirror_ != nullptr && bytes_ != nullptr && cuts_each_ && !bytes_->is_between())
    mirror_->Commit(kBeforeError, Mirror::Moment::kLast);
  const absl::Status closed = bytes_ == nullptr ? absl::OkStatus() : bytes_->Close();
  if (backup_ != nullptr) left = LeaveBackup(left, closed);
  bytes_.reset();  // Only now others may open the file.
  return left;
}

}  // namespace h5mirror::edit
