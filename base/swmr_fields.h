// Fields of VFD SWMR's configuration (H5F_vfd_swmr_config_t; its names and units are those of
// H5Fpublic.h of HDF5's feature/vfd_swmr branch). `tick_len` and `max_lag` mean the same here and
// have the same names and units. For the others this has the way to get the same effect.
#ifndef H5MIRROR_BASE_SWMR_FIELDS_H_
#define H5MIRROR_BASE_SWMR_FIELDS_H_

#include <array>
#include <string>
#include <string_view>

namespace h5mirror {

// The least that VFD SWMR takes, in ticks.
inline constexpr int kMaxLagMin = 3;

struct SwmrField {
  std::string_view name;
  std::string_view instead;
};

inline constexpr std::string_view kNoFiles = "readers get metadata without files: leave it out";

inline constexpr auto kSwmrFields = std::to_array<SwmrField>({
    {"tick_len", "set it in h5mirrord.toml or h5mirror-agent.toml"},
    {"max_lag", "set it in h5mirrord.toml"},
    {"presume_posix_semantics", kNoFiles},
    {"writer", "the program that opens a file to write is its writer: leave it out"},
    {"maintain_metadata_file", kNoFiles},
    {"generate_updater_files", kNoFiles},
    {"flush_raw_data", "each cut has all data of its moment: leave it out"},
    {"md_pages_reserved", kNoFiles},
    {"pb_expansion_threshold", "only a flush of the program's ends a tick: leave it out"},
    {"md_file_path", kNoFiles},
    {"md_file_name", kNoFiles},
    {"updater_file_path", kNoFiles},
    {"log_file_path", "the driver's key is log, h5mirrord's is log_file"},
    {"version", "no configuration here has a version: leave it out"},
});

// Another name for the bound on metadata in memory.
inline constexpr std::string_view kMetadataBudget = "metadata_budget";

// The end of the error for an unknown key that is one of these, or `metadata_budget`; else empty.
inline std::string AdviceOnSwmrField(std::string_view key) {
  for (const SwmrField& field : kSwmrFields) {
    if (key == field.name) return "it is of VFD SWMR: " + std::string(field.instead);
  }
  if (key == kMetadataBudget) return "the key is cache, of the driver and of h5mirror-agent";
  return {};
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SWMR_FIELDS_H_
