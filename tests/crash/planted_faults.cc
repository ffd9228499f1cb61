#include "tests/crash/planted_faults.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "base/strings.h"
#include "tests/crash/check_objects.h"

namespace h5mirror::store {
namespace {

using Kind = FaultChange::Kind;

// The last component of a name.
std::string BaseName(const std::string& name) {
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0.
}

// The calls of one kind on the files whose last component begins with `prefix` do nothing.
LieMaker Ignore(Kind kind, const std::string& prefix) {
  return [=]() -> FaultEnv::Lie {
    return [=](const FaultDisk& disk, const FaultChange& change) {
      return change.kind == kind && absl::StartsWith(BaseName(disk.NameOf(change.node)), prefix);
    };
  };
}

bool IsHead(const std::string& name) { return absl::EndsWith(name, ".h5"); }
bool IsHistory(const std::string& name) { return absl::EndsWith(name, ".h5m"); }

// A fork before its first durable cut.
bool IsFreshFork(const std::string& name) {
  return absl::StrContains(name, "fork") && absl::StartsWith(BaseName(name), "gen-");
}

bool IsInArchive(const std::string& name) {
  return absl::StartsWith(name, StrCat(kArchiveDirectory, "/"));
}

// Under their first name, with which they are synced.
bool IsPartOfCopy(const std::string& name) { return absl::StrContains(name, "-data-"); }
bool IsListOfCopy(const std::string& name) { return absl::EndsWith(name, "-list.new"); }

// The calls of one kind on files and directories whose name `is` says.
LieMaker IgnoreWhere(Kind kind, bool (*is)(const std::string& name)) {
  return [=]() -> FaultEnv::Lie {
    return [=](const FaultDisk& disk, const FaultChange& change) {
      return change.kind == kind && is(disk.NameOf(change.node));
    };
  };
}

bool IsMoves(const std::string& name) { return name == ".h5mirror/moves"; }

// No sync of a directory that `is` names, once `is_before` says that of the last change of a name.
LieMaker IgnoreDirectorySyncAfter(bool (*is_before)(const FaultChange& change),
                                  bool (*is)(const std::string& name)) {
  return [=]() -> FaultEnv::Lie {
    auto armed = std::make_shared<bool>(false);
    return [=](const FaultDisk& disk, const FaultChange& change) {
      if (change.is_name()) *armed = is_before(change);
      return *armed && change.kind == Kind::kSyncDirectory && is(disk.NameOf(change.node));
    };
  };
}

LieMaker IgnoreHistorySyncAfter(bool (*is_before)(const FaultChange& change)) {
  return IgnoreDirectorySyncAfter(is_before, IsHistory);
}

bool Removes(const FaultChange& change) { return change.kind == Kind::kRemove; }

bool NamesStage(const FaultChange& change) {
  return change.kind == Kind::kCreate && absl::StartsWith(change.name, "stage-");
}
bool NamesPages(const FaultChange& change) {
  return change.kind == Kind::kCreate && absl::StartsWith(change.name, "pages-");
}
bool NamesIndex(const FaultChange& change) {
  return change.kind == Kind::kRename && change.to_name == "index";
}
bool NamesOldHead(const FaultChange& change) {
  return change.kind == Kind::kLink && absl::StartsWith(change.to_name, "head-");
}

// The old head gets no second name before its first one goes.
LieMaker IgnoreLinks() {
  return []() -> FaultEnv::Lie {
    return [](const FaultDisk&, const FaultChange& change) { return change.kind == Kind::kLink; };
  };
}

// An old head is not synced before the generation that follows it is durable.
LieMaker IgnoreSyncOfOldHead() {
  return []() -> FaultEnv::Lie {
    auto followed = std::make_shared<bool>(false);
    return [=](const FaultDisk& disk, const FaultChange& change) {
      if (change.kind == Kind::kCreate && change.name == "gen-2") *followed = true;
      if (NamesOldHead(change)) *followed = false;
      return *followed && change.kind == Kind::kSync && IsHead(disk.NameOf(change.node));
    };
  };
}

// The directory that the head's directory is named in.
bool IsAboveHeads(const std::string& name) { return name.empty(); }
bool IsHeadsDirectory(const std::string& name) { return name == "d"; }
bool IsOwnDirectory(const std::string& name) { return name == ".h5mirror"; }

// All syncs of these files but the first.
LieMaker IgnoreSyncsAfterTheFirst(const std::string& prefix) {
  return [=]() -> FaultEnv::Lie {
    auto count = std::make_shared<int>(0);
    return [=](const FaultDisk& disk, const FaultChange& change) {
      return change.kind == Kind::kSync &&
             absl::StartsWith(BaseName(disk.NameOf(change.node)), prefix) && (*count)++ > 0;
    };
  };
}

// Of the stage the newest segment alone is synced.
LieMaker IgnoreSyncsOfEarlierStage() {
  return []() -> FaultEnv::Lie {
    auto newest = std::make_shared<std::string>();
    return [=](const FaultDisk& disk, const FaultChange& change) {
      if (NamesStage(change)) *newest = change.name;
      if (change.kind != Kind::kSync) return false;
      const std::string name = BaseName(disk.NameOf(change.node));
      return absl::StartsWith(name, "stage-") && name != *newest;
    };
  };
}

// All syncs, as with a cache that nobody told to be written.
LieMaker IgnoreAllSyncs() {
  return []() -> FaultEnv::Lie {
    return [](const FaultDisk&, const FaultChange& change) {
      return change.kind == Kind::kSync || change.kind == Kind::kSyncDirectory;
    };
  };
}

}  // namespace

const std::vector<PlantedFault>& AllPlantedFaults() {
  static const std::vector<PlantedFault>& all = *new std::vector<PlantedFault>{
      // Each sync of the order in docs/design/030-order-of-writes.md left out.
      {"stage_not_synced", Ignore(Kind::kSync, "stage-"), "overwrites"},
      {"earlier_segments_not_synced", IgnoreSyncsOfEarlierStage(), "overwrites_in_small_segments"},
      {"stage_name_not_synced", IgnoreHistorySyncAfter(NamesStage), "overwrites"},
      {"index_commit_not_synced", Ignore(Kind::kSync, "index-wal"), "overwrites"},
      {"index_synced_only_once", IgnoreSyncsAfterTheFirst("index"), "overwrites"},
      {"new_index_not_synced", Ignore(Kind::kSync, "index.new"), "first_versions"},
      {"new_index_name_not_synced", IgnoreHistorySyncAfter(NamesIndex), "first_versions"},
      {"pages_not_synced", Ignore(Kind::kSync, "pages-"), "overwrites"},
      {"pages_name_not_synced", IgnoreHistorySyncAfter(NamesPages), "overwrites"},
      {"direct_bytes_not_synced", Ignore(Kind::kSync, "gen-"), "first_versions"},
      {"head_not_synced", IgnoreWhere(Kind::kSync, IsHead), "growth"},
      {"head_of_a_fork_not_synced", IgnoreWhere(Kind::kSync, IsFreshFork), "forks"},
      {"promotion_not_synced", Ignore(Kind::kSync, "stage-"), "promotions"},
      {"sums_not_synced", Ignore(Kind::kSync, "sums-"), "overwrites"},
      {"old_head_name_not_synced", IgnoreHistorySyncAfter(NamesOldHead), "recreation"},
      {"old_head_not_synced", IgnoreSyncOfOldHead(), "lost_before_a_new_generation"},
      {"head_name_not_synced", IgnoreWhere(Kind::kSyncDirectory, IsHeadsDirectory),
       "first_versions"},
      {"directory_name_not_synced", IgnoreWhere(Kind::kSyncDirectory, IsAboveHeads),
       "first_versions"},
      {"end_of_a_move_not_synced", IgnoreDirectorySyncAfter(Removes, IsMoves), "purges_at_once"},
      // Those of docs/design/050-archive.md.
      {"object_not_synced", IgnoreWhere(Kind::kSync, IsInArchive), "archive_singles"},
      {"object_name_not_synced", IgnoreWhere(Kind::kSyncDirectory, IsInArchive), "archive_singles"},
      {"part_of_a_copy_not_synced", IgnoreWhere(Kind::kSync, IsPartOfCopy), "archive_copies"},
      {"list_of_a_copy_not_synced", IgnoreWhere(Kind::kSync, IsListOfCopy), "archive_copies"},
      {"tokens_not_synced", Ignore(Kind::kSync, "tokens"), "first_versions"},
      {"tokens_name_not_synced", IgnoreWhere(Kind::kSyncDirectory, IsOwnDirectory),
       "first_versions"},
      // A sync is left out where names keep their order.
      {"names_of_a_first_version_out_of_order", nullptr, "first_versions", true},
      {"names_of_an_old_head_out_of_order", nullptr, "recreation", true},
      {"no_sync_reaches_the_disk", IgnoreAllSyncs(), "overwrites"},
      // Other steps of it.
      {"old_head_not_linked", IgnoreLinks(), "recreation"},
      {"orphan_tail_of_the_head_kept", IgnoreWhere(Kind::kTruncate, IsHead), "lost_writers"},
      {"left_segment_not_cut_off", Ignore(Kind::kTruncate, "stage-"), "stage_used_again"},
      {"cut_off_bytes_not_cleared", IgnoreWhere(Kind::kZero, IsHead), "truncate_and_regrow"},
  };
  return all;
}

std::vector<std::string> PlantedFaultNames() {
  std::vector<std::string> names;
  for (const PlantedFault& fault : AllPlantedFaults()) names.push_back(fault.name);
  return names;
}

}  // namespace h5mirror::store
