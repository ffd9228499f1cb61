// The objects that --replace takes away, and references of the rest of the file to them.
#ifndef H5MIRROR_H5RESTORE_REPLACED_H_
#define H5MIRROR_H5RESTORE_REPLACED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/restore/restore_job.h"
#include "h5restore/link_graph.h"
#include "h5restore/maps.h"
#include "h5restore/survey.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// The object at a path of the target, before its link there is removed. Look(), then Try(), then
// LeadOver().
class Replaced {
 public:
  // `target` outlives it; `said` is its name.
  Replaced(hid_t target, std::string said, std::string path)
      : target_(target), said_(std::move(said)), path_(std::move(path)) {}

  // Fills other_names and the fields of `result` for the old object.
  absl::Status Look(tools::RestoreResult* result);

  // Reads all references of the rest of the file, and writes nothing. Fills led_over.
  // kFailedPrecondition: a dataset of references cannot be read, for want of a filter.
  absl::Status Try(const TargetView& view, tools::RestoreResult* result);

  // Changes those that Try() found, and fills led_over anew.
  absl::Status LeadOver(const TargetView& view, tools::RestoreResult* result);

  // Tokens of objects that no path leads to any more.
  const absl::flat_hash_set<std::string>& gone() const { return gone_; }

  // Objects below it that another link keeps.
  struct Kept {
    std::string below;  // its path below the old object
    std::string other;  // and that elsewhere
  };
  std::vector<Kept> KeptBelow() const;

  // The references that became null, of the last of Try() and LeadOver().
  const std::vector<tools::LostReferences>& lost() const { return lost_; }

 private:
  std::string NameOf(const Surveyed& object) const;
  absl::Status Visit(const Surveyed& object, bool writes, ReplacedMap* map,
                     tools::RestoreResult* result) const;
  ReplacedMap MapOf(const TargetView& view) const;

  const hid_t target_;
  const std::string said_;
  const std::string path_;
  LinkGraph graph_;
  std::string token_;
  absl::flat_hash_set<std::string> reached_;  // from the old object
  absl::flat_hash_set<std::string> kept_;     // that a path leads to without it
  absl::flat_hash_set<std::string> gone_;
  Survey all_;                     // of the target
  std::vector<size_t> to_change_;  // of all_.objects
  std::vector<tools::LostReferences> lost_;
};

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_REPLACED_H_
