#include "h5restore/splits.h"

#include "base/status_macros.h"
#include "h5restore/paths.h"

namespace h5mirror::restore {
namespace {

using hdf5::Handle;

// The most that are named; the rest is counted.
constexpr size_t kNamesMax = 16;

}  // namespace

absl::Status Splits::AddOfTarget(const std::vector<Replaced::Kept>& kept, hid_t object) {
  for (const Replaced::Kept& each : kept) {
    const Handle new_one(H5Oopen(object, each.below.c_str(), H5P_DEFAULT));
    H5Eclear2(H5E_DEFAULT);
    if (new_one.valid()) Add(each.below, each.other);
  }
  return absl::OkStatus();
}

absl::Status Splits::AddOfSource(const Survey& survey, const LinkGraph& source,
                                 const HardLink& own) {
  for (const Surveyed& each : survey.objects) {
    if (each.token == source.root()) H5M_RETURN_IF_ERROR(AddIfKept(each.path, "/"));
    // RestoreResult::other_names tells of those of the old object.
    if (each.path == "." && result_.other_names > 0) continue;
    for (const HardLink& link : source.LinksTo(each.token)) {
      if (link == own || survey.paths.contains(link.group)) continue;
      const std::vector<std::string> groups = source.Paths(source.root(), link.group, 1);
      if (groups.empty()) continue;
      H5M_RETURN_IF_ERROR(AddIfKept(each.path, Below(Below("/", groups[0]), link.name)));
    }
  }
  return absl::OkStatus();
}

absl::Status Splits::AddIfKept(const std::string& below, const std::string& other) {
  H5M_ASSIGN_OR_RETURN(const bool is_kept, view_.KeepsObjectAt(other));
  if (is_kept) Add(below, other);
  return absl::OkStatus();
}

void Splits::Add(const std::string& below, const std::string& other) {
  std::string object = Below(as_, below);
  if (!pairs_.emplace(object, other).second) return;
  ++result_.split_count;
  if (result_.splits.size() < kNamesMax) result_.splits.push_back({std::move(object), other});
}

}  // namespace h5mirror::restore
