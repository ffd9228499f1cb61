// The changes of one cut of a file, as `h5mirror watch` tells them.
#ifndef H5MIRROR_SYNC_CUT_CHANGES_H_
#define H5MIRROR_SYNC_CUT_CHANGES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output/json.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// An object, or a link, that a cut has added, removed, moved or changed.
struct ChangedObject {
  enum class How : uint8_t { kAdded, kRemoved, kMoved, kChanged };
  How how = How::kChanged;
  std::string path;
  std::string object;             // "group", "dataset", "type", "soft link", ...
  std::string old_path;           // with kMoved
  std::vector<std::string> what;  // with kChanged: "data", "shape", "attribute", ...
};

// The changes since another cut.
struct CutChanges {
  int64_t since_cut = 0;
  uint64_t changed_bytes = 0;   // of ranges that were written, each counted once
  uint64_t metadata_bytes = 0;  // of these, in whole pages; as far as is known what is metadata
  std::vector<ChangedObject> objects;  // each path once
  // Empty: these are all. Else why there may be more.
  std::string note;
};

// "+2 groups ~/run/temp ~/run/log (3 more)"; with a note the bytes, and the note.
std::string CutChangesText(const CutChanges& changes);
// Keys are listed in h5mirror.1.md.
Json CutChangesToJson(const CutChanges& changes);

// Follows a file from cut to cut. Not thread-safe.
class CutComparer {
 public:
  virtual ~CutComparer() = default;

  struct Step {
    v1::Snapshot snapshot;
    bool is_first = true;  // there is none that it could be compared with
    CutChanges changes;
  };
  // Goes on to the newest cut, which is `cut` or a newer one, and tells what is different since the
  // cut of the call before. Bounded in time and in bytes from the server; the note tells what is
  // left out. Errors: those of FollowFile; then the next call begins anew.
  virtual absl::StatusOr<Step> GoOn(int64_t cut) = 0;
};

// `client` must outlive what it makes.
using CutComparerFactory =
    std::function<std::unique_ptr<CutComparer>(rpc::Client& client, const std::string& file)>;

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_CUT_CHANGES_H_
