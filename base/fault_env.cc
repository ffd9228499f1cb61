#include "base/fault_env.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr uint64_t kRoot = 1;
constexpr size_t kSector = 512;
constexpr size_t kBlock = 4096;

// One change, as it is replayed.
struct Change {
  enum Kind : uint8_t {
    kWrite,
    kTruncate,
    kZero,
    kSync,
    kFailedSync,
    kCreate,
    kMakeDirectory,
    kRename,
    kLink,
    kRemove,
    kSyncDirectory
  };
  Kind kind = kWrite;
  uint64_t node = 0;    // file, or directory of `name`
  uint64_t offset = 0;  // kTruncate: the size; kCreate, kMakeDirectory: the new node
  std::string bytes;    // kZero: its size counts
  std::string name;
  uint64_t to_node = 0;  // directory of `to_name`
  std::string to_name;
  int64_t time = 0;  // of the files that it changes

  bool is_name() const {
    return kind == kCreate || kind == kMakeDirectory || kind == kRename || kind == kLink ||
           kind == kRemove;
  }
  bool is_data() const { return kind == kWrite || kind == kTruncate || kind == kZero; }
};

struct Node {
  bool directory = false;
  std::string data;
  std::map<std::string, uint64_t> entries;
  int64_t change_time = 0;
};

// The files and names themselves.
struct Disk {
  std::map<uint64_t, Node> nodes;

  Disk() { nodes[kRoot].directory = true; }

  void Apply(const Change& change) {
    Node& node = nodes[change.node];
    node.change_time = change.time;
    switch (change.kind) {
      case Change::kWrite:
        if (node.data.size() < change.offset + change.bytes.size()) {
          node.data.resize(change.offset + change.bytes.size());
        }
        std::memcpy(node.data.data() + change.offset, change.bytes.data(), change.bytes.size());
        break;
      case Change::kTruncate:
        node.data.resize(change.offset);
        break;
      case Change::kZero: {
        size_t end = std::min<size_t>(node.data.size(), change.offset + change.bytes.size());
        if (change.offset < end) {
          std::memset(node.data.data() + change.offset, 0, end - change.offset);
        }
        break;
      }
      case Change::kCreate:
      case Change::kMakeDirectory:
        node.entries[change.name] = change.offset;
        nodes[change.offset].directory = change.kind == Change::kMakeDirectory;
        break;
      case Change::kRename: {
        uint64_t moved = node.entries[change.name];
        node.entries.erase(change.name);
        nodes[change.to_node].entries[change.to_name] = moved;
        break;
      }
      case Change::kLink:
        nodes[change.to_node].entries[change.to_name] = node.entries[change.name];
        break;
      case Change::kRemove:
        node.entries.erase(change.name);
        break;
      default:
        break;
    }
  }
};

}  // namespace

struct FaultEnv::State {
  mutable absl::Mutex mutex;
  Disk disk ABSL_GUARDED_BY(mutex);
  Disk start ABSL_GUARDED_BY(mutex);  // before the first change
  std::vector<Change> changes ABSL_GUARDED_BY(mutex);
  uint64_t next_node ABSL_GUARDED_BY(mutex) = kRoot + 1;
  int64_t clock ABSL_GUARDED_BY(mutex) = 1;
  std::set<uint64_t> locked ABSL_GUARDED_BY(mutex);
  uint64_t calls ABSL_GUARDED_BY(mutex) = 0;
  uint64_t fail_at ABSL_GUARDED_BY(mutex) = UINT64_MAX;
  absl::Status fault ABSL_GUARDED_BY(mutex);
  bool met ABSL_GUARDED_BY(mutex) = false;
  uint64_t capacity ABSL_GUARDED_BY(mutex) = UINT64_MAX;

  absl::Status Call() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (calls++ != fail_at) return absl::OkStatus();
    met = true;
    return fault;
  }
  void Do(Change change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    change.time = ++clock;
    disk.Apply(change);
    changes.push_back(std::move(change));
  }
  uint64_t UsedBytes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    uint64_t used = 0;
    for (const auto& [number, node] : disk.nodes) used += node.data.size();
    return used;
  }
  absl::StatusOr<uint64_t> Find(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    uint64_t at = kRoot;
    while (!name.empty()) {
      size_t slash = std::min(name.find('/'), name.size());
      std::string part(name.substr(0, slash));
      name.remove_prefix(std::min(slash + 1, name.size()));
      auto& entries = disk.nodes[at].entries;
      auto found = entries.find(part);
      if (found == entries.end()) return absl::NotFoundError(StrCat(part, ": no such file"));
      at = found->second;
    }
    return at;
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

class FaultFile final : public EnvFile {
 public:
  FaultFile(StatePtr state, uint64_t node) : state_(std::move(state)), node_(node) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    const std::string& data = state_->disk.nodes[node_].data;
    if (offset >= data.size()) return 0;
    size_t got = std::min<size_t>(out.size(), data.size() - offset);
    std::memcpy(out.data(), data.data() + offset, got);
    return got;
  }
  absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) override {
    std::string bytes;
    for (std::string_view piece : pieces) bytes.append(piece);
    absl::MutexLock lock(&state_->mutex);
    absl::Status status = state_->Call();
    if (status.ok() && state_->capacity != UINT64_MAX &&
        state_->UsedBytes() + bytes.size() > state_->capacity) {
      status = absl::ResourceExhaustedError("write: No space left on device");
    }
    if (!status.ok()) bytes.resize(bytes.size() / 2);
    Change change{Change::kWrite, node_, offset, std::move(bytes), {}, 0, {}, 0};
    state_->Do(std::move(change));
    return status;
  }
  absl::Status Truncate(uint64_t size_bytes) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    state_->Do({Change::kTruncate, node_, size_bytes, {}, {}, 0, {}, 0});
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    absl::MutexLock lock(&state_->mutex);
    absl::Status status = state_->Call();
    state_->Do({status.ok() ? Change::kSync : Change::kFailedSync, node_, 0, {}, {}, 0, {}, 0});
    return status.ok() ? status : absl::InternalError(status.message());
  }
  absl::Status Zero(Extent extent) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    state_->Do(
        {Change::kZero, node_, extent.offset, std::string(extent.length, '\0'), {}, 0, {}, 0});
    return absl::OkStatus();
  }
  absl::StatusOr<Extent> NextData(uint64_t offset) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    const std::string& data = state_->disk.nodes[node_].data;
    auto is_data = [&](uint64_t at) {
      size_t from = at / kBlock * kBlock, length = std::min(kBlock, data.size() - from);
      return data.find_first_not_of('\0', from) < from + length;
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
  absl::Status SetMode(uint32_t, int64_t) override {
    absl::MutexLock lock(&state_->mutex);
    return state_->Call();
  }
  absl::Status CopyFrom(EnvFile& from, Extent extent) override {
    std::string bytes(extent.length, '\0');
    H5M_ASSIGN_OR_RETURN(size_t got, from.ReadAt(extent.offset, absl::MakeSpan(bytes)));
    bytes.resize(got);
    return h5mirror::WriteAt(*this, extent.offset, bytes);
  }
  // Some files can and some cannot, so that tests see both.
  absl::Status ShareFrom(EnvFile& from) override {
    if (node_ % 2 == 0) return EnvFile::ShareFrom(from);
    H5M_ASSIGN_OR_RETURN(uint64_t size, from.Size());
    H5M_RETURN_IF_ERROR(Truncate(0));
    return CopyFrom(from, {0, size});
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
    state_->locked.erase(node_);
  }

 private:
  StatePtr state_;
  uint64_t node_;
};

class FaultTree final : public EnvTree {
 public:
  explicit FaultTree(StatePtr state) : state_(std::move(state)) {}

  absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                uint32_t) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t node, OpenNode(name, kind));
    return std::make_unique<FaultFile>(state_, node);
  }
  absl::Status MakeDirectory(std::string_view name, uint32_t) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    if (state_->Find(name).ok()) return absl::AlreadyExistsError(StrCat(name, " exists"));
    H5M_ASSIGN_OR_RETURN(auto parent, state_->Parent(name));
    state_->Do(
        {Change::kMakeDirectory, parent.first, state_->next_node++, {}, parent.second, 0, {}, 0});
    return absl::OkStatus();
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return Move(Change::kRename, from, to);
  }
  absl::Status Link(std::string_view from, std::string_view to) override {
    return Move(Change::kLink, from, to);
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
    state_->Do({Change::kSyncDirectory, node, 0, {}, {}, 0, {}, 0});
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
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
  absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name) override {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_ASSIGN_OR_RETURN(uint64_t node, OpenNode(name, OpenKind::kCreate));
    if (!state_->locked.insert(node).second) {
      return absl::FailedPreconditionError(StrCat("another process holds ", name));
    }
    return std::make_unique<FaultLock>(state_, node);
  }
  absl::StatusOr<uint64_t> FreeBytes() override { return uint64_t{1} << 40; }

 private:
  absl::StatusOr<uint64_t> OpenNode(std::string_view name, OpenKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    auto found = state_->Find(name);
    bool create = kind == OpenKind::kCreate || kind == OpenKind::kCreateFresh;
    if (!found.ok()) {
      if (!create) return found.status();
      H5M_ASSIGN_OR_RETURN(auto parent, state_->Parent(name));
      uint64_t node = state_->next_node++;
      state_->Do({Change::kCreate, parent.first, node, {}, parent.second, 0, {}, 0});
      return node;
    }
    if (state_->disk.nodes[*found].directory) {
      return absl::InvalidArgumentError(StrCat(name, " is not a plain file"));
    }
    if (kind == OpenKind::kCreateFresh) {
      state_->Do({Change::kTruncate, *found, 0, {}, {}, 0, {}, 0});
    }
    return *found;
  }
  absl::Status Move(Change::Kind kind, std::string_view from, std::string_view to) {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_RETURN_IF_ERROR(state_->Find(from).status());
    H5M_ASSIGN_OR_RETURN(auto a, state_->Parent(from));
    H5M_ASSIGN_OR_RETURN(auto b, state_->Parent(to));
    if (kind == Change::kLink && state_->Find(to).ok()) {
      return absl::AlreadyExistsError(StrCat(to, " exists"));
    }
    state_->Do({kind, a.first, 0, {}, a.second, b.first, b.second, 0});
    return absl::OkStatus();
  }
  absl::Status RemoveName(std::string_view name) {
    absl::MutexLock lock(&state_->mutex);
    H5M_RETURN_IF_ERROR(state_->Call());
    H5M_RETURN_IF_ERROR(state_->Find(name).status());
    H5M_ASSIGN_OR_RETURN(auto parent, state_->Parent(name));
    state_->Do({Change::kRemove, parent.first, 0, {}, parent.second, 0, {}, 0});
    return absl::OkStatus();
  }

  StatePtr state_;
};

// A part of an unsynced change that reached the disk.
void ApplyTorn(const Change& change, std::mt19937_64& random, Disk* disk) {
  if (change.kind != Change::kWrite) {
    if (random() % 2) disk->Apply(change);
    return;
  }
  for (size_t at = 0; at < change.bytes.size();) {
    size_t sector_end = (change.offset + at) / kSector * kSector + kSector;
    size_t length = std::min(change.bytes.size() - at, sector_end - (change.offset + at));
    if (random() % 2) {
      Change part = change;
      part.offset += at;
      part.bytes = change.bytes.substr(at, length);
      disk->Apply(part);
    }
    at += length;
  }
}

}  // namespace

FaultEnv::FaultEnv() : state_(std::make_shared<State>()) {}
FaultEnv::~FaultEnv() = default;

absl::StatusOr<std::unique_ptr<EnvTree>> FaultEnv::OpenTree(const std::filesystem::path&) {
  return std::make_unique<FaultTree>(state_);
}
absl::Time FaultEnv::Now() { return absl::Now(); }
absl::StatusOr<int64_t> FaultEnv::GroupNumber(const std::string& group) {
  return absl::NotFoundError(StrCat("no group named '", group, "'"));
}

void FaultEnv::FailCall(uint64_t call, absl::Status status) {
  absl::MutexLock lock(&state_->mutex);
  state_->fail_at = state_->calls + call;
  state_->fault = std::move(status);
  state_->met = false;
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
  return copy;
}

std::unique_ptr<FaultEnv> FaultEnv::Crash(size_t change_max, uint64_t seed) const {
  std::mt19937_64 random(seed);
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  const size_t count = std::min(change_max, state.changes.size());
  // From the back: which nodes are synced later, and by that, which changes are safe.
  std::vector<bool> safe(count, false);
  std::set<uint64_t> synced, synced_directories;
  size_t names_safe = 0;  // names changed before this one
  for (size_t i = count; i-- > 0;) {
    const Change& change = state.changes[i];
    if (change.kind == Change::kSync) synced.insert(change.node);
    if (change.kind == Change::kFailedSync) synced.erase(change.node);
    if (change.kind == Change::kSyncDirectory) synced_directories.insert(change.node);
    if (change.is_data()) safe[i] = synced.contains(change.node);
    if (change.is_name() &&
        (synced_directories.contains(change.node) || synced_directories.contains(change.to_node))) {
      names_safe = std::max(names_safe, i + 1);
    }
  }
  const size_t names_kept =
      names_safe + (count > names_safe ? random() % (count - names_safe + 1) : 0);
  const int mood = random() % 4;  // 0: nothing unsynced survives; 1: all of it; else: some
  auto crashed = std::make_unique<FaultEnv>();
  absl::MutexLock crashed_lock(&crashed->state_->mutex);
  Disk& disk = crashed->state_->disk;
  disk = state.start;
  for (size_t i = 0; i < count; ++i) {
    const Change& change = state.changes[i];
    if (change.is_name()) {
      if (i < names_kept) disk.Apply(change);
    } else if (change.is_data()) {
      int fate = mood == 0 ? 0 : mood == 1 ? 1 : static_cast<int>(random() % 3);
      if (safe[i] || fate == 1) {
        disk.Apply(change);
      } else if (fate == 2) {
        ApplyTorn(change, random, &disk);
      }
    }
  }
  crashed->state_->start = disk;
  crashed->state_->next_node = state.next_node;
  crashed->state_->clock = state.clock;
  return crashed;
}

}  // namespace h5mirror
