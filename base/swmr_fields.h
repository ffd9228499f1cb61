// The two fields of VFD SWMR's configuration that have a meaning here (H5F_vfd_swmr_config_t of
// H5Fpublic.h of HDF5's feature/vfd_swmr branch), with the same names and units.
#ifndef H5MIRROR_BASE_SWMR_FIELDS_H_
#define H5MIRROR_BASE_SWMR_FIELDS_H_

#include <string_view>

namespace h5mirror {

// The least max_lag that VFD SWMR accepts, in ticks.
inline constexpr int kMaxLagMin = 3;

// The end of the error for an unknown key, if another program reads a field of that name; else
// empty.
inline std::string_view AdviceOnSwmrField(std::string_view key) {
  if (key == "tick_len") {
    return "it is of VFD SWMR: set it in h5mirrord.toml or h5mirror-agent.toml";
  }
  return key == "max_lag" ? "it is of VFD SWMR: set it in h5mirrord.toml" : "";
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SWMR_FIELDS_H_
