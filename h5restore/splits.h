// Objects with several hard links, which a restore makes two of.
#ifndef H5MIRROR_H5RESTORE_SPLITS_H_
#define H5MIRROR_H5RESTORE_SPLITS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/restore/restore_job.h"
#include "h5restore/link_graph.h"
#include "h5restore/maps.h"
#include "h5restore/replaced.h"
#include "h5restore/survey.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Pairs of paths that led to one object, of which one gets the copy, and the other keeps its own.
// Each pair counts once. Fills `split_count` and `splits` of the result.
class Splits {
 public:
  // `view` and `result` outlive it; the copy gets the path `as`.
  Splits(const TargetView& view, std::string as, tools::RestoreResult* result)
      : view_(view), as_(std::move(as)), result_(*result) {}

  // Of the old object in the target, where the restored one, `object`, has something by that path.
  absl::Status AddOfTarget(const std::vector<Replaced::Kept>& kept, hid_t object);

  // Whether the restored object needs a look at all links of the source, which AddOfSource() takes.
  bool IsNeeded(const Survey& survey) const { return survey.has_names_outside(); }
  absl::Status AddOfSource(const Survey& survey, const LinkGraph& source, const HardLink& own);

 private:
  absl::Status AddIfKept(const std::string& below, const std::string& other);
  void Add(const std::string& below, const std::string& other);

  const TargetView& view_;
  const std::string as_;
  tools::RestoreResult& result_;
  std::set<std::pair<std::string, std::string>> pairs_;
};

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_SPLITS_H_
