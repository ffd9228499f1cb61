#include "base/testing/fault_env.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/names_in_order.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kBlock = 4096;

using Kind = FaultChange::Kind;
using Node = FaultDisk::Node;

FaultChange OfData(Kind kind, uint64_t node, uint64_t offset = 0, std::string bytes = "") {
  FaultChange change;
  change.kind = kind;
  change.node = node;
  change.offset = offset;
  change.bytes = std::move(bytes);
  return change;
}

FaultChange OfName(Kind kind, uint64_t directory, std::string name, uint64_t target) {
  FaultChange change;
  change.kind = kind;
  change.node = directory;
  change.name = std::move(name);
  change.target = target;
  return change;
}

}  // namespace

struct FaultEnv::State {
  mutable absl::Mutex mutex;
  FaultDisk disk ABSL_GUARDED_BY(mutex);
  FaultDisk start ABSL_GUARDED_BY(mutex);  // before the first change
  std::vector<FaultChange> changes ABSL_GUARDED_BY(mutex);
  uint64_t next_node ABSL_GUARDED_BY(mutex) = FaultDisk::kRoot + 1;
  int64_t clock ABSL_GUARDED_BY(mutex) = 1;
  std::map<uint64_t, int> locked ABSL_GUARDED_BY(mutex);  // shared: how often; exclusive: -1
  uint64_t calls ABSL_GUARDED_BY(mutex) = 0;
  uint64_t fail_at ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  uint64_t fail_end ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  absl::Status fault ABSL_GUARDED_BY(mutex);
  std::string refused_part ABSL_GUARDED_BY(mutex);
  absl::Status refusal ABSL_GUARDED_BY(mutex);
  Lie lie ABSL_GUARDED_BY(mutex);
  AfterRead after_read ABSL_GUARDED_BY(mutex);
  std::function<absl::Time()> now ABSL_GUARDED_BY(mutex);
  bool met ABSL_GUARDED_BY(mutex) = false;
  uint64_t capacity ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  bool counts_space ABSL_GUARDED_BY(mutex) = true;
  std::optional<bool> shares_blocks ABSL_GUARDED_BY(mutex);
  std::map<uint64_t, uint64_t> shared_bytes ABSL_GUARDED_BY(mutex);  // by node; counted as shared
  bool has_access_lists ABSL_GUARDED_BY(mutex) = true;
  bool grows_ahead ABSL_GUARDED_BY(mutex) = false;
  bool lies_about_names ABSL_GUARDED_BY(mutex) = false;
  FileSizeMax file_sizes ABSL_GUARDED_BY(mutex);
  std::function<BootTime()> boot_time ABSL_GUARDED_BY(mutex);

  absl::Status CheckCountsSpace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return counts_space ? absl::OkStatus() : absl::UnavailableError("nobody counts the space");
  }
  absl::Status Call() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const uint64_t call = calls++;
    if (call < fail_at || call >= fail_end) return absl::OkStatus();
    met = true;
    return fault;
  }
  void Do(FaultChange change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (lie != nullptr && lie(disk, change)) return;
    change.time = ++clock;
    disk.Apply(change);
    changes.push_back(std::move(change));
  }
  uint64_t UsedBytes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    // Nameless files stay, since a crash may bring the name back.
    std::set<uint64_t> named;
    for (const auto& [number, node] : disk.nodes) {
      for (const auto& [name, target] : node.entries) named.insert(target);
    }
    uint64_t used = 0;
    for (const uint64_t number : named) {
      const uint64_t size = disk.nodes.at(number).data.size();
      const auto shared = shared_bytes.find(number);
      used += size - (shared == shared_bytes.end() ? 0 : std::min(size, shared->second));
    }
    return used;
  }
  absl::StatusOr<uint64_t> Find(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return disk.Find(name);
  }
  // The directory of `name`, and its last component.
  absl::StatusOr<std::pair<uint64_t, std::string>> Parent(std::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    size_t slash = name.rfind('/');
    H5M_ASSIGN_OR_RETURN(uint64_t node, Find(slash == name.npos ? "" : name.substr(0, slash)));
    return std::pair(node, std::string(slash == name.npos ? name : name.substr(slash + 1)));
  }
};

namespace {

using StatePtr = std::shared_ptr<FaultEnv::State>;

// Files are in memory.
constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;
absl::Status CheckEnd(uint64_t end_bytes) {
  if (end_bytes <= kFileBytesMax) return absl::OkStatus();
  return absl::ResourceExhaustedError("File too large");
}

class FaultFile final : public EnvFile {
 public:
  FaultFile(StatePtr state, uint64_t node) : state_(std::move(state)), node_(node) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override {
    FaultEnv::AfterRead after_read;
    std::string name;
    size_t got = 0;
    {
      absl::MutexLock lock(&state_->mutex);
      H5M_RETURN_IF_ERROR(state_->Call());
      const std::string& data = state_->disk.nodes[node_].data;
      if (offset < data.size()) got = std::min<size_t>(out.size(), data.size() - offset);
      std::memcpy(out.data(), data.data() + std::min<uint64_t>(offset, data.size()), got);
      after_read = state_->after_read;
      if (after_read != nullptr) name = state_->disk.NameOf(node_);
    }
    if (after_read != nullptr) after_read(name);
    return got;
  }
  absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) override {
    std::string bytes;
    for (std::string_view piece : pieces) bytes.append(piece);
    absl::MutexLock lock(&state_->mutex);
    absl::Status status = state_->Call();
    if (status.ok()) H5M_RETURN_IF_ERROR(CheckEnd(offset + bytes.size()));
    const std::string_view data = state_->disk.nodes[node_].data;
    const auto there = data.substr(std::min<uint64_t>(offset, data.size()), bytes.size());
    if (status.ok() && state_->capacity != UINT64_MAX && there != bytes &&  // no copy on write
        state_->UsedBytes() + bytes.size() > state_->capacity) {
      status = absl::ResourceExhaustedError("write: No space left on device");
    }
    if (!status.ok()) bytes.resize(bytes.size() / 2);
    state_->Do(OfData(Kind::kWrite, node_, offset, std::move(bytes)));
    return status;
  }
  absl::Status Truncate(uint64_t size_bytes) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_RETURN_IF_ERROR(CheckEnd(size_bytes));
    state_->Do(OfData(Kind::kTruncate, node_, size_bytes));
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    absl::MutexLock lock(&state_->mutex);
    absl::Status status = state_->Call();
    state_->Do(OfData(status.ok() ? Kind::kSync : Kind::kFailedSync, node_));
    return status.ok() ? status : absl::InternalError(status.message());
  }
  bool GrowAhead(uint64_t size_bytes) override {
    {
      absl::MutexLock lock(&state_->mutex);
      if (!state_->grows_ahead || state_->disk.nodes[node_].data.size() >= size_bytes) return false;
    }
    return Truncate(size_bytes).ok();
  }
  absl::Status Zero(Extent extent) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    state_->Do(OfData(Kind::kZero, node_, extent.offset, std::string(extent.length, '\0')));
    return absl::OkStatus();
  }
  absl::StatusOr<Extent> NextData(uint64_t offset) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    const std::string& data = state_->disk.nodes[node_].data;
    auto is_data = [&](uint64_t at) {
      size_t from = at / kBlock * kBlock, length = std::min(kBlock, data.size() - from);
      return std::string_view(data).substr(from, length).find_first_not_of('\0') !=
             std::string_view::npos;
    };
    while (offset < data.size() && !is_data(offset)) offset = (offset / kBlock + 1) * kBlock;
    if (offset >= data.size()) return Extent{offset, 0};
    uint64_t end = offset;
    while (end < data.size() && is_data(end)) end = (end / kBlock + 1) * kBlock;
    return Extent{offset, std::min<uint64_t>(end, data.size()) - offset};
  }
  absl::StatusOr<uint64_t> Size() override {
    H5M_ASSIGN_OR_RETURN(FileStat stat, Stat());
    return static_cast<uint64_t>(stat.size_bytes);
  }
  absl::StatusOr<FileStat> Stat() override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    const Node& node = state_->disk.nodes[node_];
    return FileStat{node_, static_cast<int64_t>(node.data.size()), node.change_time,
                    node.change_time};
  }
  absl::Status SetMode(uint32_t mode_bits, int64_t) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    state_->Do(OfData(Kind::kSetMode, node_, mode_bits));
    return absl::OkStatus();
  }
  absl::StatusOr<FileAccess> Access() override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    const Node& node = state_->disk.nodes[node_];
    if (!node.access_list.empty()) return DecodeAccessList(node.access_list);
    return FileAccess{static_cast<uint32_t>(node.mode_bits), {}};
  }
  absl::Status SetAccess(const FileAccess& access, int64_t group) override {
    if (access.named.empty()) return SetMode(access.mode_bits, group);
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    if (!state_->has_access_lists) return EnvFile::SetAccess(access, group);
    state_->Do(OfData(Kind::kSetMode, node_, access.mode_bits, EncodeAccessList(access)));
    return absl::OkStatus();
  }
  absl::Status CopyFrom(EnvFile& from, Extent extent) override {
    std::string bytes(extent.length, '\0');
    H5M_ASSIGN_OR_RETURN(size_t got, from.ReadAt(extent.offset, absl::MakeSpan(bytes)));
    bytes.resize(got);
    return h5mirror::WriteAt(*this, extent.offset, bytes);
  }
  // Some files can and some cannot, so that tests see both.
  absl::Status ShareFrom(EnvFile& from) override {
    std::optional<bool> shares_blocks;
    {
      absl::MutexLock lock(&state_->mutex);
      shares_blocks = state_->shares_blocks;
    }
    if (!shares_blocks.value_or(node_ % 2 != 0)) return EnvFile::ShareFrom(from);
    H5M_ASSIGN_OR_RETURN(uint64_t size, from.Size());
    H5M_RETURN_IF_ERROR(Truncate(0));
    if (!shares_blocks) return CopyFrom(from, {0, size});
    std::string bytes(size, '\0');
    H5M_ASSIGN_OR_RETURN(const size_t got, from.ReadAt(0, absl::MakeSpan(bytes)));
    bytes.resize(got);
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    state_->shared_bytes[node_] = got;
    state_->Do(OfData(Kind::kWrite, node_, 0, std::move(bytes)));
    return absl::OkStatus();
  }

 private:
  StatePtr state_;
  uint64_t node_;
};

class FaultLock final : public EnvLock {
 public:
  FaultLock(StatePtr state, uint64_t node) : state_(std::move(state)), node_(node) {}
  ~FaultLock() override {
    absl::MutexLock lock(&state_->mutex);
    int& holders = state_->locked[node_];
    holders = std::max(0, holders - 1);
  }

 private:
  StatePtr state_;
  uint64_t node_;
};

class FaultTree final : public EnvTree, public KnowsFileSizes, public KnowsNameOrder {
 public:
  explicit FaultTree(StatePtr state) : state_(std::move(state)) {}

  absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                uint32_t mode_bits) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    if (name.find(state_->refused_part) != name.npos) H5M_RETURN_IF_ERROR(state_->refusal);
    H5M_ASSIGN_OR_RETURN(uint64_t node, OpenNode(name, kind, mode_bits));
    return std::make_unique<FaultFile>(state_, node);
  }
  absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    if (state_->Find(name).ok()) return absl::AlreadyExistsError(StrCat(name, " exists"));
    H5M_ASSIGN_OR_RETURN(auto parent, state_->Parent(name));
    FaultChange made =
        OfName(Kind::kMakeDirectory, parent.first, parent.second, state_->next_node++);
    made.offset = mode_bits;
    state_->Do(std::move(made));
    return absl::OkStatus();
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return Move(Kind::kRename, from, to);
  }
  absl::Status Link(std::string_view from, std::string_view to) override {
    return Move(Kind::kLink, from, to);
  }
  absl::Status Remove(std::string_view name) override { return RemoveName(name); }
  absl::Status RemoveDirectory(std::string_view name) override {
    {
      absl::MutexLock lock(&state_->mutex);
      H5M_ASSIGN_OR_RETURN(uint64_t node, state_->Find(name));
      if (!state_->disk.nodes[node].entries.empty()) {
        return absl::FailedPreconditionError(StrCat(name, " is not empty"));
      }
    }
    return RemoveName(name);
  }
  absl::Status SyncDirectory(std::string_view name) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t node, state_->Find(name));
    state_->Do(OfData(Kind::kSyncDirectory, node));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    if (name.find(state_->refused_part) != name.npos) H5M_RETURN_IF_ERROR(state_->refusal);
    H5M_ASSIGN_OR_RETURN(uint64_t node, state_->Find(name));
    std::vector<DirectoryEntry> entries;
    for (const auto& [entry, number] : state_->disk.nodes[node].entries) {
      entries.push_back(
          {entry, state_->disk.nodes[number].directory ? EntryKind::kDirectory : EntryKind::kFile});
    }
    return entries;
  }
  absl::StatusOr<FileStat> Stat(std::string_view name) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t number, state_->Find(name));
    const Node& node = state_->disk.nodes[number];
    return FileStat{number, static_cast<int64_t>(node.data.size()), node.change_time,
                    node.change_time};
  }
  absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t node, OpenNode(name, OpenKind::kCreate, 0600));
    int& holders = state_->locked[node];
    if (holders < 0 || (holders > 0 && kind == LockKind::kExclusive)) {
      return absl::FailedPreconditionError(StrCat("another process holds ", name));
    }
    holders = kind == LockKind::kExclusive ? -1 : holders + 1;
    return std::make_unique<FaultLock>(state_, node);
  }
  absl::StatusOr<uint64_t> FreeBytes() override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->CheckCountsSpace());
    if (state_->capacity == UINT64_MAX) return uint64_t{1} << 40;
    const uint64_t used = state_->UsedBytes();
    return used >= state_->capacity ? 0 : state_->capacity - used;
  }
  absl::StatusOr<bool> CanShare(EnvFile&) override {
    absl::MutexLock lock(&state_->mutex);
    return state_->shares_blocks.value_or(false);
  }
  FileSizeMax FileSizes() override {
    absl::MutexLock lock(&state_->mutex);
    return state_->file_sizes;
  }
  bool KeepsNamesInOrder() override {
    absl::MutexLock lock(&state_->mutex);
    return state_->grows_ahead || state_->lies_about_names;
  }
  absl::StatusOr<uint64_t> TotalBytes() override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->CheckCountsSpace());
    return state_->capacity == UINT64_MAX ? uint64_t{1} << 40 : state_->capacity;
  }

 private:
  absl::StatusOr<uint64_t> OpenNode(std::string_view name, OpenKind kind, uint32_t mode_bits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    auto found = state_->Find(name);
    bool create = kind == OpenKind::kCreate || kind == OpenKind::kCreateFresh;
    if (!found.ok()) {
      if (!create) return found.status();
      H5M_ASSIGN_OR_RETURN(auto parent, state_->Parent(name));
      uint64_t node = state_->next_node++;
      FaultChange made = OfName(Kind::kCreate, parent.first, parent.second, node);
      made.offset = mode_bits;
      state_->Do(std::move(made));
      return node;
    }
    if (state_->disk.nodes[*found].directory) {
      return absl::InvalidArgumentError(StrCat(name, " is not a plain file"));
    }
    if (kind == OpenKind::kCreateFresh) {
      state_->Do(OfData(Kind::kTruncate, *found));
    }
    return *found;
  }
  absl::Status Move(Kind kind, std::string_view from, std::string_view to) {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t moved, state_->Find(from));
    H5M_ASSIGN_OR_RETURN(auto a, state_->Parent(from));
    H5M_ASSIGN_OR_RETURN(auto b, state_->Parent(to));
    if (kind == Kind::kLink && state_->Find(to).ok()) {
      return absl::AlreadyExistsError(StrCat(to, " exists"));
    }
    FaultChange change = OfName(kind, a.first, a.second, moved);
    change.to_node = b.first;
    change.to_name = b.second;
    state_->Do(std::move(change));
    return absl::OkStatus();
  }
  absl::Status RemoveName(std::string_view name) {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t removed, state_->Find(name));
    H5M_ASSIGN_OR_RETURN(auto parent, state_->Parent(name));
    state_->Do(OfName(Kind::kRemove, parent.first, parent.second, removed));
    return absl::OkStatus();
  }

  StatePtr state_;
};

}  // namespace

FaultEnv::FaultEnv() : state_(std::make_shared<State>()) {}
FaultEnv::~FaultEnv() = default;

absl::StatusOr<std::unique_ptr<EnvTree>> FaultEnv::OpenTree(const std::filesystem::path&) {
  return std::make_unique<FaultTree>(state_);
}
absl::Time FaultEnv::Now() {
  std::function<absl::Time()> now;
  {
    absl::MutexLock lock(&state_->mutex);
    now = state_->now;
  }
  return now == nullptr ? absl::Now() : now();
}
void FaultEnv::SetTime(std::function<absl::Time()> now) {
  absl::MutexLock lock(&state_->mutex);
  state_->now = std::move(now);
}
void FaultEnv::SetBootTime(std::function<BootTime()> boot_time) {
  absl::MutexLock lock(&state_->mutex);
  state_->boot_time = std::move(boot_time);
}
std::optional<BootTime> FaultEnv::SinceBoot() {
  std::function<BootTime()> boot_time;
  {
    absl::MutexLock lock(&state_->mutex);
    boot_time = state_->boot_time;
  }
  return boot_time == nullptr ? std::nullopt : std::optional(boot_time());
}
absl::StatusOr<int64_t> FaultEnv::GroupNumber(const std::string& group) {
  return absl::NotFoundError(StrCat("no group named '", group, "'"));
}

void FaultEnv::FailCalls(uint64_t call, uint64_t count, absl::Status status) {
  absl::MutexLock lock(&state_->mutex);
  state_->fail_at = state_->calls + call;
  state_->fail_end = count > UINT64_MAX - state_->fail_at ? UINT64_MAX : state_->fail_at + count;
  state_->fault = std::move(status);
  state_->met = false;
}
void FaultEnv::SetSharesBlocks(std::optional<bool> shares_blocks) {
  absl::MutexLock lock(&state_->mutex);
  state_->shares_blocks = shares_blocks;
}
void FaultEnv::SetAccessLists(bool has_access_lists) {
  absl::MutexLock lock(&state_->mutex);
  state_->has_access_lists = has_access_lists;
}
void FaultEnv::SetGrowsAhead(bool grows_ahead) {
  absl::MutexLock lock(&state_->mutex);
  state_->grows_ahead = grows_ahead;
}
void FaultEnv::SetLiesAboutNames(bool lies) {
  absl::MutexLock lock(&state_->mutex);
  state_->lies_about_names = lies;
}
void FaultEnv::FailOpensOf(std::string part, absl::Status status) {
  absl::MutexLock lock(&state_->mutex);
  state_->refused_part = std::move(part);
  state_->refusal = std::move(status);
}
uint64_t FaultEnv::used_bytes() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->UsedBytes();
}
void FaultEnv::SetLie(Lie lie) {
  absl::MutexLock lock(&state_->mutex);
  state_->lie = std::move(lie);
}
void FaultEnv::SetAfterRead(AfterRead after_read) {
  absl::MutexLock lock(&state_->mutex);
  state_->after_read = std::move(after_read);
}
uint64_t FaultEnv::call_count() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->calls;
}
bool FaultEnv::fault_met() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->met;
}
void FaultEnv::SetCapacity(uint64_t bytes) {
  absl::MutexLock lock(&state_->mutex);
  state_->capacity = bytes;
}
void FaultEnv::SetCountsSpace(bool counts_space) {
  absl::MutexLock lock(&state_->mutex);
  state_->counts_space = counts_space;
}
void FaultEnv::SetFileSizes(const FileSizeMax& max) {
  absl::MutexLock lock(&state_->mutex);
  state_->file_sizes = max;
}
size_t FaultEnv::change_count() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->changes.size();
}

std::unique_ptr<FaultEnv> FaultEnv::CopyNow() const {
  auto copy = std::make_unique<FaultEnv>();
  absl::MutexLock lock(&state_->mutex);
  absl::MutexLock copy_lock(&copy->state_->mutex);
  copy->state_->disk = copy->state_->start = state_->disk;
  copy->state_->next_node = state_->next_node;
  copy->state_->clock = state_->clock;
  copy->state_->grows_ahead = state_->grows_ahead;
  copy->state_->lies_about_names = state_->lies_about_names;
  return copy;
}

std::unique_ptr<FaultEnv> FaultEnv::Crash(size_t changes, uint64_t seed) const {
  CrashPoint point;
  point.change_count = changes;
  point.seed = seed;
  if (seed % 4 == 0) point.data = Unsynced::kDropped;
  if (seed % 4 == 1) point.data = Unsynced::kKept;
  return Crash(point);
}

CrashPoint FaultEnv::Possible(const CrashPoint& point) const {
  absl::MutexLock lock(&state_->mutex);
  CrashPoint possible = point;
  const bool in_order = state_->grows_ahead && !state_->lies_about_names;
  if (in_order && point.order == NameOrder::kPerDirectory)
    possible.order = NameOrder::kWholeRenames;
  return possible;
}

std::unique_ptr<FaultEnv> FaultEnv::Crash(const CrashPoint& point) const {
  const CrashPoint possible = Possible(point);
  absl::MutexLock lock(&state_->mutex);
  auto crashed = std::make_unique<FaultEnv>();
  absl::MutexLock crashed_lock(&crashed->state_->mutex);
  crashed->state_->disk = crashed->state_->start =
      CrashedDisk(state_->start, state_->changes, possible);
  crashed->state_->next_node = state_->next_node;
  crashed->state_->clock = state_->clock;
  crashed->state_->grows_ahead = state_->grows_ahead;
  crashed->state_->lies_about_names = state_->lies_about_names;
  return crashed;
}

uint64_t FaultEnv::Fingerprint() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->disk.Fingerprint();
}

std::string FaultEnv::DescribeChange(size_t number) const {
  absl::MutexLock lock(&state_->mutex);
  if (number >= state_->changes.size()) return "(none)";
  // Names as they were then.
  FaultDisk disk = state_->start;
  for (size_t i = 0; i < number; ++i) disk.Apply(state_->changes[i]);
  return Describe(disk, state_->changes[number]);
}

absl::Status FaultEnv::FlipBit(std::string_view name, uint64_t bit) {
  absl::MutexLock lock(&state_->mutex);
  H5M_ASSIGN_OR_RETURN(uint64_t node, state_->disk.Find(name));
  std::string& data = state_->disk.nodes[node].data;
  if (bit / 8 >= data.size()) return absl::OutOfRangeError(StrCat(name, " ends before the bit"));
  data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << bit % 8));
  return absl::OkStatus();
}

}  // namespace h5mirror
