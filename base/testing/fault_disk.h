// The disk below FaultEnv: files and names in memory, a record of their changes, and the states
// that a power loss may leave.
#ifndef H5MIRROR_BASE_TESTING_FAULT_DISK_H_
#define H5MIRROR_BASE_TESTING_FAULT_DISK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace h5mirror {

// One change, for a replay.
struct FaultChange {
  enum class Kind : uint8_t {
    kWrite,
    kTruncate,
    kZero,
    kSetMode,
    kSync,
    kFailedSync,
    kCreate,
    kMakeDirectory,
    kRename,
    kLink,
    kRemove,
    kSyncDirectory
  };
  Kind kind = Kind::kWrite;
  uint64_t node = 0;    // the file; for a change of a name, the directory
  uint64_t offset = 0;  // kTruncate: the size; kSetMode, kCreate: the mode bits
  std::string bytes;    // kZero: only its size matters; kSetMode: the access list
  std::string name;
  uint64_t target = 0;   // the node of the name
  uint64_t to_node = 0;  // kRename, kLink: directory of `to_name`
  std::string to_name;
  int64_t time = 0;  // the new time of the files that it changes

  bool is_name() const {
    return kind == Kind::kCreate || kind == Kind::kMakeDirectory || kind == Kind::kRename ||
           kind == Kind::kLink || kind == Kind::kRemove;
  }
  bool is_data() const {
    return kind == Kind::kWrite || kind == Kind::kTruncate || kind == Kind::kZero ||
           kind == Kind::kSetMode;
  }
};

// Which unsynced changes survive a power loss.
enum class Unsynced : uint8_t {
  kDropped,
  kKept,
  // Of each change to data: all, nothing, or any of its 512-byte sectors. Of changes of names: any
  // number.
  kMixed,
};

// How a power loss drops names that no sync covers.
enum class NameOrder : uint8_t {
  // As in a journal: if a name survives, all earlier names survive too.
  kJournal,
  // Each directory on its own. A file that moves between two directories may be in both, never in
  // none. A directory that moves is in one.
  kPerDirectory,
  // Each directory on its own, as base/names_in_order.h promises. A rename survives in both
  // directories or in neither. If it does not survive, nothing after it survives in either
  // directory.
  kWholeRenames,
};

// A moment, and one of the states that a power loss may leave at that moment.
struct CrashPoint {
  size_t change_count = 0;  // the changes that were made
  Unsynced data = Unsynced::kMixed;
  Unsynced names = Unsynced::kMixed;
  NameOrder order = NameOrder::kJournal;
  uint64_t seed = 0;  // of the choices with kMixed
};

// Thread-compatible.
struct FaultDisk {
  static constexpr uint64_t kRoot = 1;
  struct Node {
    bool directory = false;
    std::string data;
    std::map<std::string, uint64_t> entries;
    int64_t change_time = 0;
    uint64_t mode_bits = 0;
    std::string access_list;  // EncodeAccessList(); empty: none
  };
  std::map<uint64_t, Node> nodes;

  FaultDisk() { nodes[kRoot].directory = true; }

  void Apply(const FaultChange& change);
  // kNotFound. "" is the root.
  absl::StatusOr<uint64_t> Find(std::string_view name) const;
  // A name of `node`, or "(no name)".
  std::string NameOf(uint64_t node) const;
  // Equal for equal names, modes and bytes. Times do not matter.
  uint64_t Fingerprint() const;
};

// The disk after `start`, `changes`, and a power loss at `point`. A later sync of its file makes a
// change to data safe, unless a sync failed in between. A later sync of one of its directories
// makes a name safe.
FaultDisk CrashedDisk(const FaultDisk& start, absl::Span<const FaultChange> changes,
                      const CrashPoint& point);

// For people: "write d/x.h5 [0, 512)".
std::string Describe(const FaultDisk& disk, const FaultChange& change);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_FAULT_DISK_H_
