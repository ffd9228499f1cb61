#include "h5edit/edit_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/paged_bytes.h"
#include "onion_store/embedded/cut_journal.h"
#include "onion_store/embedded/embedded_store.h"
#include "onion_store/embedded/mirror_notes.h"
#include "onion_store/origin_here.h"

namespace h5mirror::edit {
namespace {

constexpr char kProgram[] = "h5edit";
// Tools that use a history between two opens are soon done, so an open waits this long. Waiting for
// a writing program would not help.
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr absl::Duration kStoreTimeout = absl::Seconds(60);

bool WantsLocks() {
  const char* const wish = getenv("HDF5_USE_FILE_LOCKING");
  return wish == nullptr || (std::string_view(wish) != "FALSE" && std::string_view(wish) != "0");
}

// HDF5's advisory lock on the file, so that no other program opens it meanwhile.
absl::StatusOr<std::unique_ptr<EnvLock>> LockHead(EnvTree& tree,
                                                  const std::filesystem::path& path) {
  if (!WantsLocks()) return nullptr;
  auto lock = tree.Lock(path.filename().string(), LockKind::kExclusive);
  if (lock.ok()) return lock;
  if (!absl::IsFailedPrecondition(lock.status())) return nullptr;  // A file system without locks.
  return absl::UnavailableError(
      StrCat("cannot open ", path.string(), ": another program has it open"));
}

// Changes in memory, over the file as it is. `stat` is that of `head`, from before it is read.
class MemoryFile : public EditFile {
 public:
  MemoryFile(std::unique_ptr<EnvTree> tree, std::unique_ptr<EnvFile> head, const FileStat& stat)
      : tree_(std::move(tree)),
        head_(std::move(head)),
        bytes_(*head_, static_cast<uint64_t>(stat.size_bytes)),
        known_(stat) {}

  uint64_t size_bytes() const override { return bytes_.size_bytes(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    return bytes_.Read(offset, out);
  }
  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    return bytes_.Write(offset, bytes);
  }
  absl::Status Truncate(uint64_t size_bytes) override { return bytes_.Truncate(size_bytes); }
  absl::Status Cut(const std::string&) override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }

 protected:
  // Finds the changes of a program that takes no locks. They are not in the edited bytes, and would
  // be lost silently.
  absl::Status CheckUnchanged(const std::filesystem::path& path) {
    H5M_ASSIGN_OR_RETURN(const FileStat now, head_->Stat());
    if (now.EqualsButName(known_)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat(path.string(),
               " was changed by another program while it was edited: nothing was done to it"));
  }
  // After a cut.
  void KnowHead() {
    if (const auto now = head_->Stat(); now.ok()) known_ = *now;
  }

  const std::unique_ptr<EnvTree> tree_;
  const std::unique_ptr<EnvFile> head_;
  PagedBytes bytes_;

 private:
  FileStat known_;
};

// A file that is only read, under HDF5's lock for reading. Without the lock its bytes could be of
// no one moment. On a descriptor of its own, as the user may lack the right to write the file.
class ReadFile final : public MemoryFile {
 public:
  ReadFile(std::unique_ptr<EnvTree> tree, std::unique_ptr<EnvFile> head, const FileStat& stat,
           int lock)
      : MemoryFile(std::move(tree), std::move(head), stat), lock_(lock) {}
  ~ReadFile() override {
    if (lock_ >= 0) close(lock_);
  }

 private:
  const int lock_;
};

// -1: there are no locks, or they are not wanted.
absl::StatusOr<int> LockToRead(const std::filesystem::path& path) {
  if (!WantsLocks()) return -1;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoToStatus(errno, StrCat("cannot open ", path.string()));
  if (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  close(fd);
  return absl::UnavailableError(
      StrCat("cannot open ", path.string(), ": another program has it open for writing"));
}

class JournalFile final : public MemoryFile {
 public:
  JournalFile(std::unique_ptr<store::EmbeddedLease> lease, std::unique_ptr<EnvLock> head_lock,
              std::unique_ptr<EnvTree> tree, std::unique_ptr<EnvFile> head, const FileStat& stat,
              std::filesystem::path path, Durability durability, AfterCut after_cut)
      : MemoryFile(std::move(tree), std::move(head), stat),
        lease_(std::move(lease)),
        head_lock_(std::move(head_lock)),
        inode_(stat.inode),
        path_(std::move(path)),
        after_cut_(std::move(after_cut)),
        journal_(*tree_, path_.filename().string(),
                 durability == Durability::kDurable ? store::JournalSync::kDurable
                                                    : store::JournalSync::kProcess,
                 lease_->is_mirrored() ? store::NoteMovesOf(path_) : nullptr) {}
  ~JournalFile() override { journal_.Close().IgnoreError(); }

  absl::Status Cut(const std::string& comment) override {
    if (!bytes_.changed()) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(store::JournalCut cut, bytes_.Changes());
    cut.inode = inode_;
    cut.comment = comment;
    const bool differs = !cut.pages.empty() || cut.size_before != cut.size_after;
    if (differs) H5M_RETURN_IF_ERROR(Move(cut));
    bytes_.Forget();
    return differs && after_cut_ ? after_cut_(cut) : absl::OkStatus();
  }
  bool is_between() const override { return journal_.is_between(); }
  absl::Status Close() override { return journal_.Close(); }

 private:
  absl::Status Move(const store::JournalCut& cut) {
    H5M_RETURN_IF_ERROR(CheckUnchanged(path_));
    if (lease_->is_mirrored()) H5M_RETURN_IF_ERROR(store::NoteComingCut(path_, cut));
    H5M_RETURN_IF_ERROR(journal_.Commit(*head_, cut));
    KnowHead();
    return absl::OkStatus();
  }

  const std::unique_ptr<store::EmbeddedLease> lease_;  // outlives the journal
  const std::unique_ptr<EnvLock> head_lock_;
  const uint64_t inode_;
  const std::filesystem::path path_;
  const AfterCut after_cut_;
  store::CutJournal journal_;
};

// Cuts that the store keeps as versions beside the file.
class HistoryFile final : public MemoryFile {
 public:
  HistoryFile(std::unique_ptr<EnvLock> head_lock, std::unique_ptr<EnvTree> tree,
              std::unique_ptr<EnvFile> head, const FileStat& stat, store::Origin origin)
      : MemoryFile(std::move(tree), std::move(head), stat),
        head_lock_(std::move(head_lock)),
        origin_(std::move(origin)) {}
  ~HistoryFile() override { Close().IgnoreError(); }

  // Gives the lease with which the first cut opens the store, or the store itself if it is open
  // already.
  void Give(std::unique_ptr<store::EmbeddedLease> lease) { lease_ = std::move(lease); }
  void Give(std::unique_ptr<store::EmbeddedStore> store) { store_ = std::move(store); }

  absl::Status Cut(const std::string& comment) override {
    if (!bytes_.changed()) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const store::JournalCut cut, bytes_.Changes());
    if (!cut.pages.empty() || cut.size_before != cut.size_after) {
      H5M_RETURN_IF_ERROR(CheckUnchanged(origin_.path));
      if (token_ == 0) H5M_RETURN_IF_ERROR(Begin());
      H5M_RETURN_IF_ERROR(CheckNamed("the file that has its name now is left alone"));
      H5M_RETURN_IF_ERROR(Send(cut, comment));
      H5M_RETURN_IF_ERROR(CheckNamed(
          "the file that has its name now lacks the change, which is a version of the history"));
      KnowHead();
    }
    bytes_.Forget();
    return absl::OkStatus();
  }
  bool is_between() const override { return is_on_its_way_; }
  absl::Status Close() override {
    absl::Status ended;
    if (token_ != 0) ended = file_->End(std::exchange(token_, 0), store::SessionEnd::kClean);
    file_.reset();
    const absl::Status closed = store_ == nullptr ? absl::OkStatus() : store_->Close(kStoreTimeout);
    store_.reset();
    return ended.ok() ? closed : ended;
  }

 private:
  absl::Status Begin() {
    if (store_ == nullptr) {
      H5M_ASSIGN_OR_RETURN(store_, store::EmbeddedStore::Open(std::move(lease_), {}));
    }
    H5M_ASSIGN_OR_RETURN(file_, store_->OpenOrCreateFile(store_->name(), 0));
    H5M_ASSIGN_OR_RETURN(const store::Token token, file_->Acquire());
    struct stat st {};  // A rollback gives the file the mode that it has now.
    const uint32_t mode_bits = stat(origin_.path.c_str(), &st) == 0 ? st.st_mode & 0777 : 0600;
    H5M_RETURN_IF_ERROR(file_->Begin(token, store::SessionStart::kContinue, origin_, {mode_bits}));
    token_ = token;
    return absl::OkStatus();
  }
  // Begin() opens the file by its name, and another file may have taken that.
  absl::Status CheckNamed(std::string_view otherwise) {
    const std::filesystem::path path = origin_.path;
    H5M_ASSIGN_OR_RETURN(const FileStat head, head_->Stat());
    const auto named = tree_->Stat(path.filename().string());
    if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
    if (named.ok() && named->inode == head.inode) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat(path.string(), " was replaced while it was edited: ", otherwise));
  }
  absl::Status Send(const store::JournalCut& cut, const std::string& comment) {
    if (cut.size_after < cut.size_before)
      H5M_RETURN_IF_ERROR(file_->Truncate(token_, cut.size_after));
    for (const store::JournalPage& page : cut.pages) {
      const Extent extent{page.offset, page.after.size()};
      const std::string_view bytes = page.after;
      if (!bytes.empty()) H5M_RETURN_IF_ERROR(file_->Write(token_, {&extent, 1}, {&bytes, 1}));
    }
    store::CutRequest request;
    request.kind = store::BarrierKind::kCommit;
    request.size_bytes = cut.size_after;
    request.barrier = {session_id_, ++barrier_count_};
    request.provenance = store::ProvenanceNow(kProgram, comment);
    // From here on, even after an error, the next open of the store may find the version complete.
    is_on_its_way_ = true;
    H5M_RETURN_IF_ERROR(file_->Cut(token_, std::move(request), {}).status());
    H5M_RETURN_IF_ERROR(file_->WaitApplied(kStoreTimeout));
    is_on_its_way_ = false;
    return absl::OkStatus();
  }

  const std::unique_ptr<EnvLock> head_lock_;
  const store::Origin origin_;
  const store::SessionId session_id_ = RandomBytes16();
  std::unique_ptr<store::EmbeddedLease> lease_;  // null once the store has it
  std::unique_ptr<store::EmbeddedStore> store_;
  std::shared_ptr<store::File> file_;
  store::Token token_ = 0;
  uint64_t barrier_count_ = 0;
  bool is_on_its_way_ = false;
};

}  // namespace

bool HasHistory(const std::filesystem::path& path) {
  return access(StrCat(path.string(), ".h5m/index").c_str(), F_OK) == 0;
}

absl::StatusOr<std::unique_ptr<EditFile>> OpenInMemory(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(const int lock, LockToRead(path));
  absl::Cleanup unlock = [lock] {
    if (lock >= 0) close(lock);
  };
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(path.parent_path()));
  H5M_ASSIGN_OR_RETURN(auto head, tree->Open(path.filename().string(), OpenKind::kRead, 0));
  H5M_ASSIGN_OR_RETURN(const FileStat stat, head->Stat());
  std::move(unlock).Cancel();
  return std::make_unique<ReadFile>(std::move(tree), std::move(head), stat, lock);
}

absl::StatusOr<std::unique_ptr<EditFile>> OpenWithJournal(const std::filesystem::path& path,
                                                          Durability durability,
                                                          AfterCut after_cut) {
  const std::string name = path.filename().string();
  H5M_ASSIGN_OR_RETURN(
      auto lease, store::EmbeddedLease::Take(Env::Posix(), path, LockKind::kExclusive, kProgram,
                                             kPatience, store::Mirrored::kGiven));
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(path.parent_path()));
  H5M_ASSIGN_OR_RETURN(auto head_lock, LockHead(*tree, path));
  H5M_ASSIGN_OR_RETURN(auto head, tree->Open(name, OpenKind::kWrite, 0));
  H5M_ASSIGN_OR_RETURN(const FileStat stat, head->Stat());
  return std::make_unique<JournalFile>(std::move(lease), std::move(head_lock), std::move(tree),
                                       std::move(head), stat, path, durability,
                                       std::move(after_cut));
}

absl::StatusOr<std::unique_ptr<EditFile>> OpenWithHistory(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  H5M_ASSIGN_OR_RETURN(
      auto lease,
      store::EmbeddedLease::Take(Env::Posix(), path, LockKind::kExclusive, kProgram, kPatience));
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(path.parent_path()));
  H5M_ASSIGN_OR_RETURN(auto head_lock, LockHead(*tree, path));
  // A crash may have left the head between two cuts: the store puts it in order first.
  H5M_ASSIGN_OR_RETURN(const bool has_history, lease->HasHistory());
  std::unique_ptr<store::EmbeddedStore> store;
  if (has_history) {
    H5M_ASSIGN_OR_RETURN(store, store::EmbeddedStore::Open(std::move(lease), {}));
    H5M_ASSIGN_OR_RETURN(auto file, store->OpenFile(name));
    H5M_RETURN_IF_ERROR(file->WaitApplied(kStoreTimeout));
  }
  H5M_ASSIGN_OR_RETURN(auto head, tree->Open(name, OpenKind::kWrite, 0));
  H5M_ASSIGN_OR_RETURN(const FileStat stat, head->Stat());
  auto made = std::make_unique<HistoryFile>(std::move(head_lock), std::move(tree), std::move(head),
                                            stat, store::OriginHere(path.string()));
  if (store != nullptr) {
    made->Give(std::move(store));
  } else {
    made->Give(std::move(lease));
  }
  return made;
}

}  // namespace h5mirror::edit
