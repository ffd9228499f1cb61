#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/local_record.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/who.h"
#include "onion_store/embedded/cut_journal.h"
#include "onion_store/embedded/embedded_store.h"
#include "onion_store/embedded/mirror_notes.h"

namespace h5mirror::store {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(20);
constexpr int kMakeAttempts = 100;

std::string HistoryName(const std::string& name, std::string_view file) {
  return StrCat(name, ".h5m/", file);
}

// The nearest directory above that is a server's root; empty: none.
std::filesystem::path RootAbove(std::filesystem::path directory) {
  std::error_code ignored;  // A directory that we may not read is no root of ours.
  while (true) {
    if (std::filesystem::exists(directory / ".h5mirror" / "format", ignored)) return directory;
    if (!directory.has_relative_path()) return {};
    directory = directory.parent_path();
  }
}

// The holder of the lease, as it described itself in the lock file: "pid 7\nhost h\nprogram
// p\nsince T\n".
struct Holder {
  std::string pid, host, program, since;

  static Holder Parse(std::string_view text) {
    Holder holder;
    for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
      const std::pair<std::string, std::string> item =
          absl::StrSplit(line, absl::MaxSplits(' ', 1));
      if (item.first == "pid") holder.pid = item.second;
      if (item.first == "host") holder.host = item.second;
      if (item.first == "program") holder.program = item.second;
      if (item.first == "since") holder.since = item.second;
    }
    return holder;
  }
  std::string Text() const {
    return StrCat("pid ", pid, "\nhost ", host, "\nprogram ", program, "\nsince ", since, "\n");
  }
  // A killed process leaves its text behind, and readers write none.
  bool MayHold() const {
    if (pid.empty()) return false;
    const int number = std::atoi(pid.c_str());
    return host != OwnHost() || (number > 0 && (kill(number, 0) == 0 || errno != ESRCH));
  }
};

// The leases that read versions, for a fork. Never destroyed: programs fork until the end.
struct Readers {
  absl::Mutex mutex;
  std::set<EmbeddedLease*> leases ABSL_GUARDED_BY(mutex);

  static Readers& Get() {
    static auto* const readers = new Readers;
    return *readers;
  }
};

// The name of a client's record beside the head; empty: none. With a record the file is mirrored to
// a server.
absl::StatusOr<std::string> FindRecord(EnvTree& tree, const std::string& head_name) {
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = tree.List(StrCat(head_name, ".h5m"));
  if (absl::IsNotFound(entries.status())) return std::string();
  H5M_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    const bool of_several = entry.name.starts_with("client-") && entry.name.ends_with(".json");
    if (entry.name == "client.json" || of_several) return entry.name;
  }
  return std::string();
}

}  // namespace

void EmbeddedLease::PrepareFork() { Readers::Get().mutex.Lock(); }
void EmbeddedLease::ParentAfterFork() { Readers::Get().mutex.Unlock(); }

void EmbeddedLease::ChildAfterFork() {
  Readers& readers = Readers::Get();
  for (EmbeddedLease* lease : readers.leases) lease->LeaveToParent();
  readers.leases.clear();
  readers.mutex.Unlock();
}

EmbeddedLease::EmbeddedLease(Env& env, const std::filesystem::path& head, LockKind kind,
                             std::unique_ptr<EnvTree> tree)
    : env_(env),
      directory_(head.parent_path()),
      name_(head.filename().string()),
      kind_(kind),
      tree_(std::move(tree)) {
  if (kind_ != LockKind::kShared) return;
  Readers& readers = Readers::Get();
  absl::MutexLock lock(&readers.mutex);
  readers.leases.insert(this);
}

absl::StatusOr<std::unique_ptr<EmbeddedLease>> EmbeddedLease::Take(
    Env& env, const std::filesystem::path& head, LockKind kind, const std::string& program,
    absl::Duration timeout, Mirrored mirrored, JournalWay way) {
  H5M_RETURN_IF_ERROR(CheckName(head.filename().string()));
  if (const std::filesystem::path root = RootAbove(head.parent_path()); !root.empty()) {
    return absl::FailedPreconditionError(
        StrCat(head.string(), " lies under ", root.string(),
               ", the root of an h5mirrord, whose file it is: name that server instead of "
               "server=embedded, or move the file and its .h5m directory out of the root"));
  }
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree(head.parent_path()));
  std::unique_ptr<EmbeddedLease> lease(new EmbeddedLease(env, head, kind, std::move(tree)));
  H5M_ASSIGN_OR_RETURN(const std::string record, FindRecord(*lease->tree_, lease->name_));
  lease->is_mirrored_ = !record.empty();
  if (lease->is_mirrored_ && mirrored == Mirrored::kRefused) {
    return absl::FailedPreconditionError(
        StrCat(head.string(), " is mirrored to a server, as ", head.string(), ".h5m/", record,
               " says: name that server instead of server=embedded, or remove that "
               "record to give the mirror up"));
  }
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    absl::Status taken = lease->TakeNow(program, way);
    if (taken.ok()) return lease;
    if (!absl::IsUnavailable(taken) || absl::Now() >= deadline) return taken;
    absl::SleepFor(kRetry);
  }
}

absl::Status EmbeddedLease::MakeHistory() {
  absl::Status made = tree_->MakeDirectory(StrCat(name_, ".h5m"), kBesideModeBits);
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

absl::Status EmbeddedLease::TakeNow(const std::string& program, JournalWay way) {
  const std::string lock_name = HistoryName(name_, "lock");
  if (kind_ == LockKind::kShared) {
    H5M_ASSIGN_OR_RETURN(const bool has, HasHistory());
    if (!has) {
      return absl::NotFoundError(StrCat((directory_ / name_).string(),
                                        " has no history beside it (", name_,
                                        ".h5m): it was not written with server=embedded"));
    }
  }
  absl::StatusOr<std::unique_ptr<EnvLock>> lock = absl::NotFoundError("");
  // A process that gave up an empty history may remove it between the two calls.
  for (int i = 0; i < kMakeAttempts && absl::IsNotFound(lock.status()); ++i) {
    if (kind_ == LockKind::kExclusive) H5M_RETURN_IF_ERROR(MakeHistory());
    lock = tree_->Lock(lock_name, kind_);
  }
  if (absl::IsFailedPrecondition(lock.status())) return TakenByOthers();
  H5M_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  if (kind_ == LockKind::kShared) return absl::OkStatus();
  const Holder self{StrCat(getpid()), OwnHost(), program,
                    absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())};
  // Only for messages: a full disk must not keep any process out.
  auto file = tree_->Open(lock_name, OpenKind::kCreateFresh, 0600);
  if (file.ok()) WriteAt(**file, 0, self.Text()).IgnoreError();
  // Settles a cut that a crash left half-way in a file without a history.
  const HeadMoved moved = is_mirrored_ ? NoteMovesOf(directory_ / name_) : nullptr;
  absl::Status settled = SettleJournal(*tree_, name_, way, moved, &notice_);
  if (!settled.ok()) Release();  // The next try must not meet this lock.
  return settled;
}

// Releases an exclusive lease.
void EmbeddedLease::Release() {
  const std::string lock_name = HistoryName(name_, "lock");
  // A journal that is not settled is found by its mark.
  const bool has_journal = tree_->Exists(HistoryName(name_, "journal")).value_or(true);
  if (has_journal || HasHistory().value_or(true)) {
    auto file = tree_->Open(lock_name, OpenKind::kCreateFresh, 0600);
    file.IgnoreError();  // The rest of the text names a process that is gone.
  } else {
    // No version was made, so the history leaves no trace. Other files in the directory stay.
    tree_->Remove(HistoryName(name_, "open")).IgnoreError();
    tree_->Remove(lock_name).IgnoreError();
    tree_->RemoveDirectory(StrCat(name_, ".h5m")).IgnoreError();
  }
  lock_.reset();
}

absl::Status EmbeddedLease::TakenByOthers() const {
  std::string text(1024, '\0');
  auto file = tree_->Open(HistoryName(name_, "lock"), OpenKind::kRead, 0);
  auto got = file.ok() ? (*file)->ReadAt(0, absl::MakeSpan(text)) : file.status();
  text.resize(got.value_or(0));
  const Holder holder = Holder::Parse(text);
  const std::string path = (directory_ / name_).string();
  if (!holder.MayHold()) {
    return absl::UnavailableError(
        StrCat(path,
               ": its history is in use by a reader of its versions, or by a program that has just "
               "begun to write; try again when that program has closed it"));
  }
  return absl::UnavailableError(StrCat(path, ": its history is in use by ", holder.program,
                                       " (pid ", holder.pid, " on ", holder.host, ", since ",
                                       holder.since, "); try again when it has closed the file"));
}

EmbeddedLease::~EmbeddedLease() {
  if (kind_ == LockKind::kShared) {
    Readers& readers = Readers::Get();
    absl::MutexLock lock(&readers.mutex);
    readers.leases.erase(this);
  }
  if (lock_ != nullptr && kind_ == LockKind::kExclusive) Release();
}

absl::StatusOr<bool> EmbeddedLease::HasHistory() const {
  return tree_->Exists(HistoryName(name_, "index"));
}

absl::StatusOr<bool> EmbeddedLease::IsUnclean() const {
  return tree_->Exists(HistoryName(name_, "open"));
}

}  // namespace h5mirror::store
