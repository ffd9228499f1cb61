#include "tools/h5edit/recovery.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "base/env.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/cut_journal.h"
#include "onion_store/embedded_store.h"
#include "tools/h5edit/backup.h"
#include "tools/h5edit/beside.h"
#include "tools/hdf5/handle.h"

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

absl::Status Discard(EnvTree& tree, const std::filesystem::path& real,
                     const store::JournalLeft& left, std::string* said) {
  const std::string name = real.filename().string();
  const std::string history = real.string() + ".h5m";
  *said =
      StrCat(real.string(), left.is_committed ? " is as it was before the cut that was given up\n"
                                              : " has nothing to give up\n");
  if (!Exists(history)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const auto lock, LockHistory(tree, name));
  const absl::Status back = store::SettleJournal(tree, name, store::JournalWay::kBack);
  if (absl::IsFailedPrecondition(back)) {
    H5M_RETURN_IF_ERROR(store::SetJournalAside(tree, name));
    *said = StrCat(real.string(),
                   " stays as it is, as the edit that was broken off cannot be taken back (",
                   ToStd(back.message()), "); its journal is kept as ", history, "/",
                   store::kGivenUpJournal, "\n");
  } else {
    H5M_RETURN_IF_ERROR(back);
  }
  return Exists(history + "/index") ? absl::OkStatus() : RemoveHistory(tree, name);
}

absl::Status CheckOpens(const std::filesystem::path& path) {
  return hdf5::Own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                   StrCat("open ", path.string()))
      .status();
}

// Where there is a journal, what is on its way to the file is done, or given up.
absl::Status Settle(const std::filesystem::path& given, const std::filesystem::path& real,
                    const store::JournalLeft& left, std::string* said) {
  *said = StrCat(given.string(), left.is_committed ? ": the cut that was on its way to it is done\n"
                                                   : ": in order\n");
  if (!Exists(real.string() + ".h5m")) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const auto lease, store::EmbeddedLease::Take(
                                             Env::Posix(), real, LockKind::kExclusive, kProgram,
                                             kPatience, store::JournalWay::kForwardAsked));
  if (!lease->notice().empty()) *said = StrCat(lease->notice(), "\n");
  return absl::OkStatus();
}

absl::Status LookOnly(const std::filesystem::path& given, const std::filesystem::path& real,
                      const store::JournalLeft& left, std::string* said) {
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
  const std::filesystem::path copy = BackupPathOf(given);
  if (!Exists(copy)) return absl::OkStatus();
  const bool is_between = Exists(copy.string() + ".h5m/journal");
  if (!is_between) H5M_RETURN_IF_ERROR(CheckOpens(copy));
  StrAppend(said, copy.string(), ": a back-up, which ",
            is_between ? "was being brought up to date" : "opens",
            "; --recover puts it back, --recover --discard removes it\n");
  return absl::OkStatus();
}

}  // namespace

absl::Status SettleFile(const std::filesystem::path& real) {
  if (!Exists(real.string() + ".h5m/journal")) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(
      const auto lease,
      store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive, kProgram, kPatience));
  if (!lease->notice().empty()) std::cerr << StrCat(kProgram, ": ", lease->notice(), "\n");
  return absl::OkStatus();
}

absl::Status Recover(const Options& options, std::string* said) {
  std::error_code error;
  const std::filesystem::path given = options.file;
  const std::filesystem::path copy = BackupPathOf(given);
  const std::filesystem::path real = std::filesystem::canonical(given, error);
  if (error)
    return absl::NotFoundError(StrCat("cannot open ", options.file, ": ", error.message()));
  H5M_RETURN_IF_ERROR(CheckCanLookBeside(real));
  H5M_RETURN_IF_ERROR(CheckCanLookBeside(copy));
  H5M_ASSIGN_OR_RETURN(const auto tree, Env::Posix().OpenTree(real.parent_path()));
  auto read = store::ReadJournal(*tree, real.filename().string());
  // One that is none that h5edit trusts can be set aside.
  const bool is_refused = absl::IsFailedPrecondition(read.status());
  if (!read.ok() && !(options.discards && is_refused)) return read.status();
  const store::JournalLeft left = is_refused ? store::JournalLeft{} : *std::move(read);
  if (options.checks) return LookOnly(given, real, left, said);
  // Whoever edits the file now is met first, before anything of his back-up is touched.
  if (options.discards) {
    H5M_RETURN_IF_ERROR(Discard(*tree, real, left, said));
    H5M_RETURN_IF_ERROR(SettleBackup(given));
    if (!Exists(copy)) return absl::OkStatus();
    StrAppend(said, copy.string(), " was removed\n");
    return std::filesystem::remove(copy, error)
               ? absl::OkStatus()
               : absl::PermissionDeniedError(
                     StrCat("remove ", copy.string(), ": ", error.message()));
  }
  H5M_RETURN_IF_ERROR(Settle(given, real, left, said));
  // Where there is a history the store puts the file in order.
  if (Exists(real.string() + ".h5m/index")) {
    std::string notice;
    H5M_RETURN_IF_ERROR(
        store::HealEmbedded(Env::Posix(), real, kProgram, kPatience, kTimeout, &notice));
  }
  H5M_RETURN_IF_ERROR(SettleBackup(given));
  if (!Exists(copy)) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(CheckOpens(copy));
  H5M_ASSIGN_OR_RETURN(
      const auto lease,
      store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive, kProgram, kPatience));
  H5M_RETURN_IF_ERROR(MoveBackupBack(given, real));
  StrAppend(said, given.string(), " was put back from ", copy.string(), "\n");
  return absl::OkStatus();
}

}  // namespace h5mirror::edit
