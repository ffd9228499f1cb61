#include "h5edit/recovery.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "base/env.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "h5edit/backup.h"
#include "h5edit/beside.h"
#include "h5edit/mirror.h"
#include "h5edit/put_back.h"
#include "hdf5/handle.h"
#include "onion_store/embedded/cut_journal.h"
#include "onion_store/embedded/embedded_store.h"
#include "onion_store/embedded/mirror_notes.h"

namespace h5mirror::edit {
namespace {

constexpr char kProgram[] = "h5edit";
constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr absl::Duration kTimeout = absl::Hours(1);

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The history's lock, without what EmbeddedLease::Take() does with a journal.
absl::StatusOr<std::unique_ptr<EnvLock>> LockHistory(EnvTree& tree, const std::string& name) {
  auto lock = tree.Lock(StrCat(name, ".h5m/lock"), LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status()))
    return absl::UnavailableError(StrCat(name, " is being edited: try again when that has ended"));
  return lock;
}

absl::Status RemoveHistory(EnvTree& tree, const std::string& name) {
  tree.Remove(StrCat(name, ".h5m/open")).IgnoreError();
  H5M_RETURN_IF_ERROR(tree.Remove(StrCat(name, ".h5m/lock")));
  tree.RemoveDirectory(StrCat(name, ".h5m")).IgnoreError();  // Something else is kept there.
  return absl::OkStatus();
}

// Brings the head forward or back, where it keeps no history; a journal that cannot be settled is
// set aside, and `gave_up` says why.
absl::Status SettleOrSetAside(EnvTree& tree, const std::filesystem::path& real,
                              store::JournalWay way, std::string* gave_up, std::string* notice) {
  const std::string name = real.filename().string();
  const std::string history = real.string() + ".h5m";
  if (!Exists(history)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const auto lock, LockHistory(tree, name));
  const store::HeadMoved moved = IsMirrored(real) ? store::NoteMovesOf(real) : nullptr;
  const absl::Status settled = store::SettleJournal(tree, name, way, moved, notice);
  if (absl::IsFailedPrecondition(settled)) {
    H5M_RETURN_IF_ERROR(store::SetJournalAside(tree, name));
    *gave_up = StrCat("(", ToStd(settled.message()), "); its journal is kept as ", history, "/",
                      store::kGivenUpJournal, "\n");
  } else {
    H5M_RETURN_IF_ERROR(settled);
  }
  return Exists(history + "/index") ? absl::OkStatus() : RemoveHistory(tree, name);
}

// The back-up `copy`, empty where there is none, goes, too.
absl::Status Discard(EnvTree& tree, const std::filesystem::path& given,
                     const std::filesystem::path& real, const store::JournalLeft& left,
                     const std::filesystem::path& copy, std::string* said) {
  std::string gave_up;
  H5M_RETURN_IF_ERROR(SettleOrSetAside(tree, real, store::JournalWay::kBack, &gave_up, nullptr));
  if (!gave_up.empty()) {
    *said =
        StrCat(real.string(),
               " stays as it is, as the edit that was broken off cannot be taken back ", gave_up);
  } else {
    *said =
        StrCat(real.string(), left.is_committed ? " is as it was before the cut that was given up\n"
                                                : " has nothing to give up\n");
  }
  H5M_RETURN_IF_ERROR(SettleBackup(copy.empty() ? BackupPathOf(given) : copy));
  if (copy.empty()) return absl::OkStatus();
  if (!gave_up.empty()) {
    StrAppend(said, copy.string(),
              ", a back-up, is kept, as the file may hold a part of an edit: ", "h5edit --recover ",
              given.string(), " puts it back, h5edit --recover --discard ", given.string(),
              " removes it\n");
    return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(const auto lease,
                       store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive,
                                                  kProgram, kPatience, store::Mirrored::kGiven));
  DropSecondName(real);
  std::error_code error;
  if (!std::filesystem::remove(copy, error))
    return absl::PermissionDeniedError(StrCat("remove ", copy.string(), ": ", error.message()));
  UnmarkBackup(copy, real);
  StrAppend(said, copy.string(), " was removed\n");
  return absl::OkStatus();
}

absl::Status CheckOpens(const std::filesystem::path& path) {
  return hdf5::Own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                   StrCat("open ", path.string()))
      .status();
}

// Where there is a journal, what is on its way to the file is done, or given up. With a back-up,
// which is put back next, the file need not be in order.
absl::Status Settle(EnvTree& tree, const std::filesystem::path& given,
                    const std::filesystem::path& real, const store::JournalLeft& left,
                    bool has_backup, std::string* said) {
  *said = StrCat(given.string(), left.is_committed ? ": the cut that was on its way to it is done\n"
                                                   : ": in order\n");
  if (!Exists(real.string() + ".h5m")) return absl::OkStatus();
  std::string notice, gave_up;
  if (has_backup && !HasHistory(real)) {
    H5M_RETURN_IF_ERROR(
        SettleOrSetAside(tree, real, store::JournalWay::kForwardAsked, &gave_up, &notice));
  } else {
    H5M_ASSIGN_OR_RETURN(
        const auto lease,
        store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive, kProgram, kPatience,
                                   store::Mirrored::kGiven, store::JournalWay::kForwardAsked));
    notice = lease->notice();
  }
  if (!notice.empty()) *said = StrCat(notice, "\n");
  if (!gave_up.empty())
    *said = StrCat("the edit of ", given.string(), " that was broken off was given up ", gave_up);
  return absl::OkStatus();
}

absl::Status LookOnly(const std::filesystem::path& given, const std::filesystem::path& real,
                      const store::JournalLeft& left, const std::filesystem::path& copy,
                      std::string* said) {
  *said = left.is_committed ? StrCat(given.string(), ": a cut of ", left.cut.pages.size(),
                                     " pages is on its way to it (", left.cut.comment,
                                     "); --recover finishes it, --recover --discard gives it up\n")
          : left.exists     ? StrCat(given.string(),
                                     ": an edit was broken off before it changed the file; "
                                         "--recover removes what it left\n")
          : HasOpenHistory(real)
              ? StrCat(given.string(),
                       ": its history is open: a program writes the file, or died while it did; "
                       "--recover puts it in order then\n")
              : StrCat(given.string(), ": nothing to recover\n");
  if (copy.empty()) return absl::OkStatus();
  const bool is_between = Exists(copy.string() + ".h5m/journal");
  if (!is_between) H5M_RETURN_IF_ERROR(CheckOpens(copy));
  StrAppend(said, copy.string(), ": a back-up, which ",
            is_between ? "was being brought up to date" : "opens",
            "; --recover puts it back, --recover --discard removes it\n");
  if (const std::string changed = ChangedSince(copy, real); !changed.empty())
    StrAppend(said, given.string(), " ", changed, ": --recover keeps that under another name\n");
  return absl::OkStatus();
}

// The file becomes what its back-up `copy` is.
absl::Status PutBack(const std::filesystem::path& given, const std::filesystem::path& real,
                     const std::filesystem::path& copy, std::string* said) {
  if (HasHistory(real)) {
    return absl::FailedPreconditionError(
        StrCat(real.string(), " has a history beside it, which would not know of the back-up ",
               copy.string(), ": h5mirror rollback ", given.string(),
               "@VERSION gives it an old state back, h5edit --recover --discard ", given.string(),
               " removes the back-up"));
  }
  H5M_RETURN_IF_ERROR(CheckOpens(copy));
  H5M_ASSIGN_OR_RETURN(const auto lease,
                       store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive,
                                                  kProgram, kPatience, store::Mirrored::kGiven));
  std::filesystem::path kept;
  H5M_RETURN_IF_ERROR(MoveBackupBack(copy, real, &kept));
  StrAppend(said, given.string(), " was put back from ", copy.string(),
            "; the replaced file is kept as ", kept.string(), "\n");
  return absl::OkStatus();
}

}  // namespace

absl::Status SettleFile(const std::filesystem::path& real) {
  if (!Exists(real.string() + ".h5m/journal")) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const auto lease,
                       store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive,
                                                  kProgram, kPatience, store::Mirrored::kGiven));
  if (!lease->notice().empty())
    std::cerr << StrCat(kProgram, ": ", Printable(lease->notice()), "\n");
  return absl::OkStatus();
}

absl::Status Recover(const Options& options, std::string* said) {
  std::error_code error;
  const std::filesystem::path given = options.file;
  const std::filesystem::path real = std::filesystem::canonical(given, error);
  if (error)
    return absl::NotFoundError(StrCat("cannot open ", options.file, ": ", error.message()));
  H5M_RETURN_IF_ERROR(CheckCanLookBeside(real));
  H5M_RETURN_IF_ERROR(CheckCanLookBeside(BackupPathOf(given)));
  H5M_ASSIGN_OR_RETURN(const auto tree, Env::Posix().OpenTree(real.parent_path()));
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path copy, FindBackup(given, real));
  auto read = store::ReadJournal(*tree, real.filename().string());
  // A journal that h5edit does not trust can be set aside.
  const bool is_refused = absl::IsFailedPrecondition(read.status());
  const bool may_set_aside = options.discards || (!copy.empty() && !options.checks);
  if (!read.ok() && !(may_set_aside && is_refused)) return read.status();
  const store::JournalLeft left = is_refused ? store::JournalLeft{} : *std::move(read);
  if (options.checks) return LookOnly(given, real, left, copy, said);
  // The lock of a running edit is met first, before anything of its back-up is touched.
  if (options.discards) return Discard(*tree, given, real, left, copy, said);
  const std::string changed = copy.empty() ? "" : ChangedSince(copy, real);
  H5M_RETURN_IF_ERROR(Settle(*tree, given, real, left, !copy.empty(), said));
  // Where there is a history the store puts the file in order.
  if (HasHistory(real)) {
    std::string notice;
    H5M_RETURN_IF_ERROR(
        store::HealEmbedded(Env::Posix(), real, kProgram, kPatience, kTimeout, &notice));
  }
  H5M_RETURN_IF_ERROR(SettleBackup(copy.empty() ? BackupPathOf(given) : copy));
  if (copy.empty()) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(PutBack(given, real, copy, said));
  if (!changed.empty()) StrAppend(said, "the kept file ", changed, "\n");
  return absl::OkStatus();
}

}  // namespace h5mirror::edit
