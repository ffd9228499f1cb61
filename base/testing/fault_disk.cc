#include "base/testing/fault_disk.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <set>

#include "base/strings.h"

namespace h5mirror {
namespace {

using Kind = FaultChange::Kind;

constexpr size_t kSector = 512;

// A part of an unsynced change that reached the disk.
void ApplyTorn(const FaultChange& change, std::mt19937_64& random, FaultDisk* disk) {
  if (change.kind != Kind::kWrite) {
    if (random() % 2) disk->Apply(change);
    return;
  }
  for (size_t at = 0; at < change.bytes.size();) {
    size_t sector_end = (change.offset + at) / kSector * kSector + kSector;
    size_t length = std::min(change.bytes.size() - at, sector_end - (change.offset + at));
    if (random() % 2) {
      FaultChange part = change;
      part.offset += at;
      part.bytes = change.bytes.substr(at, length);
      disk->Apply(part);
    }
    at += length;
  }
}

void ApplyUnsynced(const FaultChange& change, Unsynced data, std::mt19937_64& random,
                   FaultDisk* disk) {
  if (data == Unsynced::kDropped) return;
  const int fate = data == Unsynced::kKept ? 0 : static_cast<int>(random() % 3);
  if (fate == 0) disk->Apply(change);
  if (fate == 1) ApplyTorn(change, random, disk);
}

// Marks the changes of which nothing can be lost any more. Goes backwards, and notes which nodes
// are synced later.
std::vector<bool> SafeChanges(absl::Span<const FaultChange> changes) {
  std::vector<bool> safe(changes.size(), false);
  std::set<uint64_t> synced;
  for (size_t i = changes.size(); i-- > 0;) {
    const FaultChange& change = changes[i];
    if (change.kind == Kind::kSync) synced.insert(change.node);
    if (change.kind == Kind::kFailedSync) synced.erase(change.node);
    if (change.is_data()) safe[i] = synced.contains(change.node);
  }
  return safe;
}

// The number of changes, from the first on and before `end`, whose names all survive.
size_t KeptCount(size_t safe, size_t end, Unsynced names, std::mt19937_64& random) {
  if (names == Unsynced::kDropped || safe >= end) return safe;
  return names == Unsynced::kKept ? end : safe + random() % (end - safe + 1);
}

// For each directory: the change up to which its names survive.
class KeptNames {
 public:
  KeptNames(absl::Span<const FaultChange> changes, const CrashPoint& point,
            std::mt19937_64& random) {
    std::map<uint64_t, size_t> safe;  // per directory
    size_t safe_in_all = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      const FaultChange& change = changes[i];
      if (change.is_name()) directories_[change.node] = 0;
      if (change.is_name() && change.to_node != 0) directories_[change.to_node] = 0;
      if (change.kind != Kind::kSyncDirectory) continue;
      safe[change.node] = i;
      // The journal is written up to the newest change of the directory.
      for (size_t j = i; j-- > safe_in_all;) {
        if (!changes[j].is_name() ||
            (changes[j].node != change.node && changes[j].to_node != change.node)) {
          continue;
        }
        safe_in_all = j + 1;
        break;
      }
    }
    if (point.order == NameOrder::kWholeRenames) MakeRenamesSafe(changes, &safe);
    const size_t in_all = KeptCount(safe_in_all, changes.size(), point.names, random);
    for (auto& [directory, kept] : directories_) {
      kept = point.order == NameOrder::kJournal
                 ? in_all
                 : KeptCount(safe[directory], changes.size(), point.names, random);
    }
    if (point.order == NameOrder::kWholeRenames) DropHalfRenames(changes);
  }
  bool Has(uint64_t directory, size_t change) const {
    auto found = directories_.find(directory);
    return found != directories_.end() && change < found->second;
  }

 private:
  // A rename that is safe in one directory makes the other directory safe up to it.
  static void MakeRenamesSafe(absl::Span<const FaultChange> changes,
                              std::map<uint64_t, size_t>* safe) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = 0; i < changes.size(); ++i) {
        if (changes[i].kind != Kind::kRename) continue;
        size_t& from = (*safe)[changes[i].node];
        size_t& to = (*safe)[changes[i].to_node];
        if ((i < from) == (i < to)) continue;
        (i < from ? to : from) = i + 1;
        goes_on = true;
      }
    }
  }
  // Never drops a safe name, if MakeRenamesSafe() was called.
  void DropHalfRenames(absl::Span<const FaultChange> changes) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = 0; i < changes.size(); ++i) {
        if (changes[i].kind != Kind::kRename) continue;
        size_t& from = directories_[changes[i].node];
        size_t& to = directories_[changes[i].to_node];
        if ((i < from) == (i < to)) continue;
        (i < from ? from : to) = i;
        goes_on = true;
      }
    }
  }

  std::map<uint64_t, size_t> directories_;
};

void ApplyName(const FaultChange& change, size_t number, const KeptNames& kept, FaultDisk* disk) {
  // The file may get another name that survives.
  if (change.kind == Kind::kCreate) disk->nodes[change.target].mode_bits = change.offset;
  const bool here = kept.Has(change.node, number);
  if (change.kind != Kind::kRename && change.kind != Kind::kLink) {
    if (here) disk->Apply(change);
    return;
  }
  if (!kept.Has(change.to_node, number)) return;
  FaultChange part = change;
  // The old name is still there. A directory has only one name: a check of the disk drops the old
  // one.
  if (!here && !disk->nodes[change.target].directory) part.kind = Kind::kLink;
  disk->Apply(part);
}

void HashName(const FaultDisk& disk, uint64_t number, uint64_t* hash) {
  auto mix = [hash](uint64_t value) {
    *hash = (*hash ^ value) * 0x9e3779b97f4a7c15u;
    *hash ^= *hash >> 29;
  };
  const FaultDisk::Node& node = disk.nodes.at(number);
  mix(node.directory);
  mix(node.mode_bits);
  mix(std::hash<std::string_view>()(node.access_list));
  mix(std::hash<std::string_view>()(node.data));
  for (const auto& [name, entry] : node.entries) {
    mix(std::hash<std::string_view>()(name));
    HashName(disk, entry, hash);
  }
  mix(node.entries.size());
}

bool FindName(const FaultDisk& disk, uint64_t at, uint64_t wanted, std::string* name) {
  const size_t length = name->size();
  for (const auto& [entry, number] : disk.nodes.at(at).entries) {
    name->resize(length);
    name->append(length == 0 ? entry : StrCat("/", entry));
    if (number == wanted || FindName(disk, number, wanted, name)) return true;
  }
  name->resize(length);
  return false;
}

}  // namespace

void FaultDisk::Apply(const FaultChange& change) {
  Node& node = nodes[change.node];
  node.change_time = change.time;
  switch (change.kind) {
    case Kind::kWrite:
      if (node.data.size() < change.offset + change.bytes.size()) {
        node.data.resize(change.offset + change.bytes.size());
      }
      std::memcpy(node.data.data() + change.offset, change.bytes.data(), change.bytes.size());
      break;
    case Kind::kTruncate:
      node.data.resize(change.offset);
      break;
    case Kind::kZero: {
      size_t end = std::min<size_t>(node.data.size(), change.offset + change.bytes.size());
      if (change.offset < end) {
        std::memset(node.data.data() + change.offset, 0, end - change.offset);
      }
      break;
    }
    case Kind::kSetMode:
      node.mode_bits = change.offset;
      node.access_list = change.bytes;
      break;
    case Kind::kCreate:
    case Kind::kMakeDirectory:
      node.entries[change.name] = change.target;
      nodes[change.target].directory = change.kind == Kind::kMakeDirectory;
      nodes[change.target].mode_bits = change.offset;
      break;
    case Kind::kRename:
      node.entries.erase(change.name);
      [[fallthrough]];
    case Kind::kLink:
      nodes[change.target];  // The node may have lost the name that it was made with.
      nodes[change.to_node].entries[change.to_name] = change.target;
      break;
    case Kind::kRemove:
      node.entries.erase(change.name);
      break;
    default:
      break;
  }
}

absl::StatusOr<uint64_t> FaultDisk::Find(std::string_view name) const {
  uint64_t at = kRoot;
  const std::string_view whole = name;
  while (!name.empty()) {
    size_t slash = std::min(name.find('/'), name.size());
    std::string part(name.substr(0, slash));
    name.remove_prefix(std::min(slash + 1, name.size()));
    const auto& entries = nodes.at(at).entries;
    auto found = entries.find(part);
    if (found == entries.end()) return absl::NotFoundError(StrCat(whole, ": no such file"));
    at = found->second;
  }
  return at;
}

std::string FaultDisk::NameOf(uint64_t node) const {
  std::string name;
  if (node == kRoot) return name;
  return FindName(*this, kRoot, node, &name) ? name : "(no name)";
}

uint64_t FaultDisk::Fingerprint() const {
  uint64_t hash = 0;
  HashName(*this, kRoot, &hash);
  return hash;
}

FaultDisk CrashedDisk(const FaultDisk& start, absl::Span<const FaultChange> changes,
                      const CrashPoint& point) {
  changes = changes.subspan(0, std::min(point.change_count, changes.size()));
  std::mt19937_64 random(point.seed);
  const std::vector<bool> safe = SafeChanges(changes);
  const KeptNames names(changes, point, random);
  FaultDisk disk = start;
  for (size_t i = 0; i < changes.size(); ++i) {
    const FaultChange& change = changes[i];
    if (change.is_name()) {
      ApplyName(change, i, names, &disk);
    } else if (change.is_data() && safe[i]) {
      disk.Apply(change);
    } else if (change.is_data()) {
      ApplyUnsynced(change, point.data, random, &disk);
    }
  }
  return disk;
}

std::string Describe(const FaultDisk& disk, const FaultChange& change) {
  const std::string name = disk.NameOf(change.node);
  const std::string entry = StrCat(name, name.empty() ? "" : "/", change.name);
  const std::string end = StrCat(change.offset + change.bytes.size());
  switch (change.kind) {
    case Kind::kWrite:
      return StrCat("write ", name, " [", change.offset, ", ", end, ")");
    case Kind::kTruncate:
      return StrCat("truncate ", name, " to ", change.offset);
    case Kind::kZero:
      return StrCat("zero ", name, " [", change.offset, ", ", end, ")");
    case Kind::kSetMode:
      return StrCat("mode of ", name);
    case Kind::kSync:
      return StrCat("sync ", name);
    case Kind::kFailedSync:
      return StrCat("failed sync ", name);
    case Kind::kCreate:
      return StrCat("create ", entry);
    case Kind::kMakeDirectory:
      return StrCat("make directory ", entry);
    case Kind::kRename:
      return StrCat("rename ", entry, " to ", disk.NameOf(change.to_node), "/", change.to_name);
    case Kind::kLink:
      return StrCat("link ", entry, " to ", disk.NameOf(change.to_node), "/", change.to_name);
    case Kind::kRemove:
      return StrCat("remove ", entry);
    default:
      return StrCat("sync directory ", name);
  }
}

}  // namespace h5mirror
