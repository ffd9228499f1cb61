// Finds the differences between two versions of an HDF5 file.
#ifndef H5MIRROR_H5DIFF_WALK_H_
#define H5MIRROR_H5DIFF_WALK_H_

#include <cstdint>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "h5diff/object_diff.h"
#include "hdf5/format.h"
#include "hdf5/source_driver.h"

namespace h5mirror::tools {

// Walks both versions from their roots by the names of links, nearest to the unexplained bytes
// first, and ends when there are none left (h5diff/evidence.h), or when everything was
// compared. Objects that lie nowhere near a change are never opened; of a group in the oldest
// format only those nodes of its tree are read that lead there.
//
// Not thread-safe.
class Walk {
 public:
  // Both files must outlive it, and so must the objects of `context`.
  Walk(DiffContext& context, const hdf5::SourceFile& old_file, const hdf5::SourceFile& new_file)
      : context_(context), files_{&old_file, &new_file} {}

  // Errors: of the source.
  absl::Status Run();

  // After a Run() that failed: reports the links that were found on one side alone until then.
  void ReportLone();

  uint64_t objects_compared() const { return objects_compared_; }

 private:
  // Two objects of one path that are to be compared in any case.
  struct Pair {
    std::string path;
    uint64_t old_address, new_address;
  };
  // A group whose links are looked at one by one.
  struct Group {
    std::string path;
    uint64_t address;  // in both versions
    hdf5::LocalHeap heap;
    bool compared = false;  // all its links
  };
  struct Item {
    enum class What : uint8_t { kTree, kSymbols, kGroup, kObject };
    uint64_t cost;
    What what;
    uint64_t address;
    uint32_t group;
    uint64_t name_offset = 0;  // kObject of a group that was not compared
    std::string name{};        // kObject of one that was
    bool operator<(const Item& other) const { return cost > other.cost; }  // nearest on top
  };
  // A link that only one version has, in a group that both have.
  struct Lone {
    Side side;
    std::string path;
    Link link;
  };
  // An object that such a link leads to, or that lies below one. It is listed under the names that
  // it is found to have at the end: which of them was met first depends on where the walk began.
  struct LoneObject {
    ObjectKind kind = ObjectKind::kOther;
    std::string text;
    std::vector<Link> links{};  // of a group
    bool alone = true;          // this is its only name, and the same is true of all above
    bool listed = false;
  };
  using LoneObjects = absl::flat_hash_map<std::pair<int, uint64_t>, LoneObject>;

  absl::Status Prepare();
  absl::Status Loop();
  absl::Status ComparePair(const Pair& pair);
  absl::Status CompareOpen(const Pair& pair, const OpenObject& one, const OpenObject& other);
  // Takes down what an excluded object holds in both versions, so that the walk may end all the
  // same. Of a group also what its links lead to, when it is met.
  absl::Status PassBy(const Pair& pair);
  // True where it was enough to note the group's tree for later.
  absl::StatusOr<bool> NoteTree(const Pair& pair);
  absl::StatusOr<std::optional<hdf5::SymbolTable>> FindSymbolTable(Side side, uint64_t address);
  // Ends the object of the evidence's Begin().
  absl::Status EndScope();
  // The same, and explains nothing. Errors: of the source.
  absl::Status DropScope();
  absl::Status CompareLinks(const std::string& path, hid_t one, hid_t other);
  absl::Status CompareLink(uint32_t group, const Link& one, const Link& other);
  absl::Status CompareNotedLinks(Group& group);
  absl::Status Visit(const Item& item);
  absl::Status VisitNode(const Item& item, Group& group);
  absl::StatusOr<std::string> NameOf(const Item& item, const Group& group);
  void Push(Item item);
  uint64_t CostOf(const Item& item) const;
  absl::Status TakeLone(Side side, const std::string& path, const Link& link);
  absl::Status TakeLoneObjects(Side side, const std::string& path, uint64_t address);
  // `alone`: no other name leads there by way of a group above.
  absl::StatusOr<LoneObject> TakeLoneObject(Side side, const std::string& path, uint64_t address,
                                            bool alone);
  LoneObject* FindLoneObject(Side side, const Link& link);
  // Links to one object under an old and a new name.
  void FindMoves();
  void ReportLone(const Lone& lone);
  absl::Status ReportUnknown(const std::string& path, const absl::Status& status);
  absl::StatusOr<std::string> ReadBytes(Side side, uint64_t address, uint64_t length);
  uint32_t AddGroup(const std::string& path);
  std::string Child(uint32_t group, const std::string& name) const;

  DiffContext& context_;
  const hdf5::SourceFile* const files_[2];
  unsigned tree_k_ = 16, symbols_k_ = 4;
  std::vector<Pair> pairs_;
  // Committed types of compared objects: last, as most are met under a name of their own before.
  std::vector<Pair> types_;
  std::priority_queue<Item> items_;
  std::vector<Group> groups_;
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> compared_;
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> passed_;  // excluded
  // Objects with another path, and all below them: they were explained as objects of one side, so
  // they are compared in any case.
  absl::flat_hash_set<uint64_t> moved_;
  bool below_moved_ = false;  // the group whose links are compared is one of them
  LoneObjects lone_objects_;
  std::vector<Lone> lone_;
  bool explain_ = true;  // the reads of the current pair or object are its own alone
  uint64_t objects_compared_ = 0;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_WALK_H_
