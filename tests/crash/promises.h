// What a store has promised: the bytes of every cut, and which cuts, versions, numbers and tokens
// it had given at which moment of the disk's record.
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
  // The bytes at every cut that was ever made, promised or not: what is found must be one of them.
  std::map<CutNumber, Bytes> golden;
  // Of rollbacks that failed, and whose cuts nobody knows.
  std::vector<Bytes> attempts;

  // `change_count`: the changes that the disk had seen when it was said.
  struct Acked {
    CutNumber cut = 0;
    VersionNumber version = 0;  // 0: durable, and no version
    size_t change_count = 0;
  };
  std::vector<Acked> acked;
  struct Given {
    CutNumber cut = 0;
    size_t change_count = 0;
  };
  std::vector<Given> given;
  // Tags given and taken away, in the order of the calls.
  struct TagChange {
    std::string tag;
    VersionNumber version = 0;  // 0: taken away
    bool acked = false;         // else nobody knows whether it happened
    size_t change_count = 0;
  };
  std::vector<TagChange> tag_changes;

  // Versions that somebody has begun to drop, and when: from then on they may be there or not, and
  // once the prune has ended they are gone.
  struct Droppable {
    VersionNumber version = 0;
    size_t change_count = 0;
    size_t gone_count = SIZE_MAX;
  };
  std::vector<Droppable> droppable;
  // Names that it was given, in the order of the calls; at first it has the one that `files` has it
  // under.
  struct NameChange {
    std::string name;  // or kRemoved, kPurged
    bool acked = false;
    size_t change_count = 0;
  };
  static constexpr char kRemoved[] = "";
  static constexpr char kPurged[] = "(purged)";
  std::vector<NameChange> name_changes;
  // Of a file that a session made. One that was there before has none.
  static constexpr char kWriter[] = "unix:writer";
  std::string owner = kWriter;
  // What it began as a fork of. No prune drops that.
  struct Forked {
    FileId file_id{};
    VersionNumber version = 0;  // 0: it is no fork
  };
  Forked forked = {};
  // Some of its history may be in the archive.
  bool is_archived = false;
  // It may have copies in the archive; those that were acked, by the version that they show.
  bool is_copied = false;
  std::vector<Acked> copies;
  // What a session says that makes it, in a scenario or in a check.
  LocalAccess Local() const { return {0640, std::nullopt, owner}; }

  // The newest cut that was acked; 0: none.
  CutNumber AckedCut() const;
  // The largest number that was given.
  CutNumber GivenCut() const;
  bool IsDroppable(VersionNumber version) const;
  bool IsGone(VersionNumber version) const;
  // Null where no cut of that number may exist.
  Bytes GoldenOf(CutNumber cut) const;
  // For each tag that there ever was the versions that may have it; 0: none.
  std::map<std::string, std::set<VersionNumber>> PossibleTags() const;
  // The names that it may have, of which the first was `name`.
  std::set<std::string> PossibleNames(const std::string& name) const;
};

struct Promises {
  std::map<std::string, FilePromises> files;
  struct GivenToken {
    Token token = 0;
    size_t change_count = 0;
  };
  std::vector<GivenToken> tokens;

  // What had been promised after `change_count` changes, as of the first change.
  Promises At(size_t change_count) const;
  Token GivenTokenMax() const;
  // How many acks and numbers there were after `change_count` changes.
  size_t CountAt(size_t change_count) const;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_PROMISES_H_
