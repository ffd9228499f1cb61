#include "h5restore/scales.h"

#include <algorithm>

#include "base/status_macros.h"
#include "h5restore/references.h"

namespace h5mirror::restore {
namespace {

// The name of HDF5's dimension scales specification.
constexpr char kScalesOfDataset[] = "DIMENSION_LIST";

// Looks at references, and changes none.
class OutsideMap final : public ReferenceMap {
 public:
  explicit OutsideMap(const absl::flat_hash_map<std::string, std::string>& inside)
      : inside_(inside) {}

  absl::StatusOr<Lead> Find(const Referenced& from) override {
    found_ = found_ || (from.object >= 0 && !inside_.contains(TokenOf(from.info)));
    return Lead();
  }
  bool found() const { return found_; }

 private:
  const absl::flat_hash_map<std::string, std::string>& inside_;
  bool found_ = false;
};

}  // namespace

absl::StatusOr<bool> HasScalesOutside(hid_t object, const Surveyed& what,
                                      const absl::flat_hash_map<std::string, std::string>& inside,
                                      const std::string& said) {
  const auto& names = what.attributes_with_references;
  if (std::find(names.begin(), names.end(), kScalesOfDataset) == names.end()) return false;
  OutsideMap map(inside);
  H5M_RETURN_IF_ERROR(CopyAttribute(object, kScalesOfDataset, H5I_INVALID_HID, kScalesOfDataset,
                                    said, Writes::kWhereChanged, map)
                          .status());
  return map.found();
}

}  // namespace h5mirror::restore
