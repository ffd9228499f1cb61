#include "base/testing/failing_env.h"

#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/names_in_order.h"
#include "base/status_macros.h"

namespace h5mirror {
namespace {

enum class Kind : uint8_t { kRead, kWrite, kSync, kChange };

bool Counts(FailingEnv::Count count, Kind kind) {
  if (count == FailingEnv::Count::kCalls) return true;
  return count == FailingEnv::Count::kChanges ? kind != Kind::kRead : kind == Kind::kSync;
}

}  // namespace

struct FailingEnv::State {
  mutable absl::Mutex mutex;
  std::map<Count, uint64_t> counts ABSL_GUARDED_BY(mutex);
  uint64_t fail_at ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  uint64_t fail_end ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  Calls failing ABSL_GUARDED_BY(mutex) = Calls::kAll;
  absl::Status fault ABSL_GUARDED_BY(mutex);
  bool met ABSL_GUARDED_BY(mutex) = false;
  Count hook_count ABSL_GUARDED_BY(mutex) = Count::kCalls;
  uint64_t hook_at ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  std::function<void()> hook ABSL_GUARDED_BY(mutex);
  Lie lie ABSL_GUARDED_BY(mutex);
  uint64_t grow_count ABSL_GUARDED_BY(mutex) = 0;
  std::set<EnvFile*> unsynced ABSL_GUARDED_BY(mutex);  // of the wrapped Env

  // Call this before each call that can fail.
  absl::Status Call(Kind kind) ABSL_LOCKS_EXCLUDED(mutex) {
    std::function<void()> hook_now;
    absl::Status status;
    {
      absl::MutexLock lock(&mutex);
      const uint64_t call = counts[Count::kCalls];
      for (const Count count : {Count::kCalls, Count::kChanges, Count::kSyncs}) {
        if (!Counts(count, kind)) continue;
        if (counts[count]++ == hook_at && count == hook_count) {
          hook_now = std::exchange(hook, nullptr);
        }
      }
      const bool fails =
          call >= fail_at && call < fail_end && (failing == Calls::kAll || kind == Kind::kWrite);
      if (fails) {
        met = true;
        status = fault;
      }
    }
    if (hook_now != nullptr) hook_now();
    return status;
  }
  bool Lies(std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    return lie != nullptr && lie(name);
  }
};

namespace {

class FailingFile final : public EnvFile {
 public:
  FailingFile(FailingEnv::State& state, std::unique_ptr<EnvFile> file, std::string name)
      : state_(state), file_(std::move(file)), name_(std::move(name)) {}
  ~FailingFile() override { NoteSynced(); }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return file_->ReadAt(offset, out);
  }
  absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) override {
    const absl::Status fault = Change(Kind::kWrite);
    if (fault.ok()) return file_->WriteAt(offset, pieces);
    std::string bytes;
    for (std::string_view piece : pieces) bytes.append(piece);
    bytes.resize(bytes.size() / 2);
    H5M_RETURN_IF_ERROR(h5mirror::WriteAt(*file_, offset, bytes));
    return fault;
  }
  absl::Status Truncate(uint64_t size_bytes) override {
    H5M_RETURN_IF_ERROR(Change(Kind::kChange));
    return file_->Truncate(size_bytes);
  }
  absl::Status Sync() override {
    H5M_ASSIGN_OR_RETURN(const bool syncs, BeginSync());
    return syncs ? file_->Sync() : absl::OkStatus();
  }
  absl::Status SyncWithTimes() override {
    H5M_ASSIGN_OR_RETURN(const bool syncs, BeginSync());
    return syncs ? file_->SyncWithTimes() : absl::OkStatus();
  }
  bool GrowAhead(uint64_t size_bytes) override {
    if (!Change(Kind::kChange).ok() || !file_->GrowAhead(size_bytes)) return false;
    absl::MutexLock lock(&state_.mutex);
    ++state_.grow_count;
    return true;
  }
  void StartWriteback(Extent extent) override { file_->StartWriteback(extent); }
  void StartReading(Extent extent) override { file_->StartReading(extent); }
  absl::Status Zero(Extent extent) override {
    H5M_RETURN_IF_ERROR(Change(Kind::kChange));
    return file_->Zero(extent);
  }
  absl::StatusOr<Extent> NextData(uint64_t offset) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return file_->NextData(offset);
  }
  absl::StatusOr<uint64_t> Size() override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return file_->Size();
  }
  absl::StatusOr<FileStat> Stat() override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return file_->Stat();
  }
  absl::StatusOr<uint32_t> Owner() override { return file_->Owner(); }
  absl::Status SetMode(uint32_t mode_bits, int64_t group) override {
    H5M_RETURN_IF_ERROR(Change(Kind::kChange));
    return file_->SetMode(mode_bits, group);
  }
  absl::StatusOr<FileAccess> Access() override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return file_->Access();
  }
  absl::Status SetAccess(const FileAccess& access, int64_t group) override {
    H5M_RETURN_IF_ERROR(Change(Kind::kChange));
    return file_->SetAccess(access, group);
  }
  absl::Status CopyFrom(EnvFile& from, Extent extent) override {
    H5M_RETURN_IF_ERROR(Change(Kind::kWrite));
    return file_->CopyFrom(*static_cast<FailingFile&>(from).file_, extent);
  }
  absl::Status ShareFrom(EnvFile& from) override {
    H5M_RETURN_IF_ERROR(Change(Kind::kWrite));
    return file_->ShareFrom(*static_cast<FailingFile&>(from).file_);
  }
  EnvFile& behind() { return *file_; }
  // Called before a sync. False: the sync lies.
  absl::StatusOr<bool> BeginSync() {
    if (const absl::Status fault = state_.Call(Kind::kSync); !fault.ok()) {
      return absl::InternalError(fault.message());
    }
    if (state_.Lies(name_)) return false;
    NoteSynced();  // The sync may or may not cover bytes that are written from now on.
    return true;
  }

 private:
  absl::Status Change(Kind kind) {
    const absl::Status fault = state_.Call(kind);
    absl::MutexLock lock(&state_.mutex);
    state_.unsynced.insert(file_.get());
    return fault;
  }
  void NoteSynced() {
    absl::MutexLock lock(&state_.mutex);
    state_.unsynced.erase(file_.get());
  }

  FailingEnv::State& state_;
  const std::unique_ptr<EnvFile> file_;
  const std::string name_;
};

class FailingTree : public EnvTree, public KnowsFileSizes, public KnowsNameOrder {
 public:
  FailingTree(FailingEnv::State& state, std::unique_ptr<EnvTree> tree)
      : state_(state), tree_(std::move(tree)) {}

  absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                uint32_t mode_bits) override {
    const bool may_change = kind == OpenKind::kCreate || kind == OpenKind::kCreateFresh;
    H5M_RETURN_IF_ERROR(state_.Call(may_change ? Kind::kChange : Kind::kRead));
    H5M_ASSIGN_OR_RETURN(auto file, tree_->Open(name, kind, mode_bits));
    return std::make_unique<FailingFile>(state_, std::move(file), std::string(name));
  }
  absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kChange));
    return tree_->MakeDirectory(name, mode_bits);
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kChange));
    return tree_->Rename(from, to);
  }
  absl::Status Link(std::string_view from, std::string_view to) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kChange));
    return tree_->Link(from, to);
  }
  absl::Status Remove(std::string_view name) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kChange));
    return tree_->Remove(name);
  }
  absl::Status RemoveDirectory(std::string_view name) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kChange));
    return tree_->RemoveDirectory(name);
  }
  absl::Status SyncDirectory(std::string_view name) override {
    if (const absl::Status fault = state_.Call(Kind::kChange); !fault.ok()) {
      return absl::InternalError(fault.message());
    }
    if (state_.Lies(name)) return absl::OkStatus();
    return tree_->SyncDirectory(name);
  }
  // Each file counts as a sync of its own. The syncs that do not fail are made.
  absl::Status SyncAll(absl::Span<const FileSync> files) override {
    absl::Status fault;
    std::vector<FileSync> behind;
    for (const FileSync& sync : files) {
      auto& file = static_cast<FailingFile&>(*sync.file);
      const absl::StatusOr<bool> syncs = file.BeginSync();
      fault.Update(syncs.status());
      if (syncs.ok() && *syncs) behind.push_back({&file.behind(), sync.kind});
    }
    fault.Update(tree_->SyncAll(behind));
    return fault;
  }
  absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return tree_->List(name);
  }
  absl::StatusOr<FileStat> Stat(std::string_view name) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kRead));
    return tree_->Stat(name);
  }
  absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) override {
    H5M_RETURN_IF_ERROR(state_.Call(Kind::kChange));
    return tree_->Lock(name, kind);
  }
  absl::StatusOr<uint64_t> FreeBytes() override { return tree_->FreeBytes(); }
  absl::StatusOr<bool> CanShare(EnvFile& from) override {
    return tree_->CanShare(static_cast<FailingFile&>(from).behind());
  }
  absl::StatusOr<uint64_t> TotalBytes() override { return tree_->TotalBytes(); }
  FileSizeMax FileSizes() override {
    auto* const knows = dynamic_cast<KnowsFileSizes*>(tree_.get());
    return knows == nullptr ? FileSizeMax{} : knows->FileSizes();
  }
  bool KeepsNamesInOrder() override { return h5mirror::KeepsNamesInOrder(*tree_); }

 private:
  FailingEnv::State& state_;
  const std::unique_ptr<EnvTree> tree_;
};

class RemoteFailingTree final : public FailingTree, public IsRemote {
  using FailingTree::FailingTree;
};

}  // namespace

FailingEnv::FailingEnv(Env& env, std::filesystem::path root)
    : env_(env), root_(std::move(root)), state_(std::make_unique<State>()) {}
FailingEnv::~FailingEnv() = default;

absl::StatusOr<std::unique_ptr<EnvTree>> FailingEnv::OpenTree(const std::filesystem::path& root) {
  H5M_ASSIGN_OR_RETURN(auto tree, env_.OpenTree(root_ / root.relative_path()));
  if (dynamic_cast<IsRemote*>(tree.get()) != nullptr) {
    return std::make_unique<RemoteFailingTree>(*state_, std::move(tree));
  }
  return std::make_unique<FailingTree>(*state_, std::move(tree));
}

std::optional<BootTime> FailingEnv::SinceBoot() {
  auto* const knows = dynamic_cast<KnowsBootTime*>(&env_);
  return knows == nullptr ? std::nullopt : knows->SinceBoot();
}

void FailingEnv::FailCalls(uint64_t first, uint64_t count, absl::Status status, Calls calls) {
  absl::MutexLock lock(&state_->mutex);
  state_->fail_at = first;
  state_->fail_end = count > UINT64_MAX - first ? UINT64_MAX : first + count;
  state_->fault = std::move(status);
  state_->failing = calls;
  state_->met = false;
}
uint64_t FailingEnv::count(Count count) const {
  absl::MutexLock lock(&state_->mutex);
  return state_->counts[count];
}
uint64_t FailingEnv::grow_count() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->grow_count;
}
bool FailingEnv::fault_met() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->met;
}
void FailingEnv::Before(Count count, uint64_t number, std::function<void()> hook) {
  absl::MutexLock lock(&state_->mutex);
  state_->hook_count = count;
  state_->hook_at = number;
  state_->hook = std::move(hook);
}
void FailingEnv::SetLie(Lie lie) {
  absl::MutexLock lock(&state_->mutex);
  state_->lie = std::move(lie);
}

void FailingEnv::SyncSome(uint64_t seed) {
  std::mt19937_64 random(seed);
  // Under the lock, since a file may be closed meanwhile.
  absl::MutexLock lock(&state_->mutex);
  for (EnvFile* const file : state_->unsynced) {
    if (random() % 2 == 0) file->Sync().IgnoreError();
  }
}

}  // namespace h5mirror
