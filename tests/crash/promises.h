// The promises of a store: the bytes of every cut, and the cuts, versions, numbers and tokens that
// it had given at each moment of the disk's record.
#ifndef H5MIRROR_TESTS_CRASH_PROMISES_H_
#define H5MIRROR_TESTS_CRASH_PROMISES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "onion_store/types.h"

namespace h5mirror::store {

using Bytes = std::shared_ptr<const std::string>;

// Of one file. Thread-compatible.
struct FilePromises {
  // The bytes at every cut ever made, promised or not: the bytes found must be those of one of
  // them.
  std::map<CutNumber, Bytes> golden;
  // The bytes of failed rollbacks, whose cuts are unknown.
  std::vector<Bytes> attempts;

  // `change_count`: the changes that the disk had seen when the promise was made.
  struct Acked {
    CutNumber cut = 0;
    VersionNumber version = 0;  // 0: durable, but no version
    size_t change_count = 0;
  };
  std::vector<Acked> acked;
  struct Given {
    CutNumber cut = 0;
    size_t change_count = 0;
  };
  std::vector<Given> given;
  // Tags given and removed, in the order of the calls.
  struct TagChange {
    std::string tag;
    VersionNumber version = 0;  // 0: removed
    bool acked = false;         // false: unknown whether it happened
    size_t change_count = 0;
  };
  std::vector<TagChange> tag_changes;

  // Versions that a prune has begun to drop, and when. From then on they may exist or not; once the
  // prune has ended they are gone.
  struct Droppable {
    VersionNumber version = 0;
    size_t change_count = 0;
    size_t gone_count = SIZE_MAX;
  };
  std::vector<Droppable> droppable;
  // The file's later names, in the order of the calls; its first name is its key in `files`.
  struct NameChange {
    std::string name;  // or kRemoved, kPurged
    bool acked = false;
    size_t change_count = 0;
  };
  static constexpr char kRemoved[] = "";
  static constexpr char kPurged[] = "(purged)";
  std::vector<NameChange> name_changes;
  // The owner of a file that a session made. A file that existed before has none.
  static constexpr char kWriter[] = "unix:writer";
  std::string owner = kWriter;
  // The source of a fork. No prune drops that.
  struct Forked {
    FileId file_id{};
    VersionNumber version = 0;  // 0: it is no fork
  };
  Forked forked = {};
  // Some of its history may be in the archive.
  bool is_archived = false;
  // The file may have copies in the archive. The acked copies, by the version that they show.
  bool is_copied = false;
  std::vector<Acked> copies;
  // The access that a session gives when it makes the file, in a scenario or in a check.
  LocalAccess Local() const { return {0640, std::nullopt, owner}; }

  // The newest cut that was acked; 0: none.
  CutNumber AckedCut() const;
  // The largest number that was given.
  CutNumber GivenCut() const;
  bool IsDroppable(VersionNumber version) const;
  bool IsGone(VersionNumber version) const;
  // Null: no cut of that number may exist.
  Bytes GoldenOf(CutNumber cut) const;
  // For each tag that ever existed, the versions that may have it; 0: none.
  std::map<std::string, std::set<VersionNumber>> PossibleTags() const;
  // The names that the file may have; its first name was `name`.
  std::set<std::string> PossibleNames(const std::string& name) const;
};

struct Promises {
  std::map<std::string, FilePromises> files;
  struct GivenToken {
    Token token = 0;
    size_t change_count = 0;
  };
  std::vector<GivenToken> tokens;

  // The promises made in the first `change_count` changes.
  Promises At(size_t change_count) const;
  Token GivenTokenMax() const;
  // How many acks and numbers there were after `change_count` changes.
  size_t CountAt(size_t change_count) const;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_PROMISES_H_
