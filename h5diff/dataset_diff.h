// Compares two datasets.
#ifndef H5MIRROR_H5DIFF_DATASET_DIFF_H_
#define H5MIRROR_H5DIFF_DATASET_DIFF_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/context/path_globs.h"
#include "h5diff/change.h"
#include "h5diff/evidence.h"
#include "h5diff/footprint.h"
#include "h5diff/value.h"
#include "h5diff/version_pages.h"
#include "hdf5/handle.h"

namespace h5mirror::tools {

// Shared by all comparisons of one run; everything outlives them.
struct DiffContext {
  VersionPages& pages;
  Evidence& evidence;
  ChangeSink sink;
  // Where structures of two generations meet, equal references may lead to different values.
  bool one_generation = true;
  // False: an address in one has nothing to do with the same address in the other.
  bool one_file = true;
  Tolerance tolerance{};
  // Links that these cover are as if they were not there: nothing of what they lead to is compared
  // or told, unless another name leads there.
  PathGlobs exclude{};
  uint64_t base_offset = 0;
  bool same_base_offset = true;
  // Committed types that compared objects use, by their addresses in both: what was read of them
  // was taken for the objects', so they must be compared too.
  std::vector<std::pair<uint64_t, uint64_t>> types{};
  // Also those of objects of one side were met.
  bool met_type = false;
  // False: data lies in changed pages or elsewhere, and so has changed. Only where its values lead
  // to others it is looked at all the same.
  bool look_at_data = true;
};

// "float64 (10, 20)".
std::string DatasetText(hid_t dataset);

// Reports the differences of shape, type, layout, filters, fill value and data. Of the data only
// what lies in changed pages, or was moved, is read. Errors: of the source only; what HDF5 cannot
// read is reported as kUnknown.
absl::Status CompareDatasets(DiffContext& context, const std::string& path, hid_t old_dataset,
                             hid_t new_dataset);

// Takes down where a dataset that only one version has keeps its data.
absl::Status ExplainDataset(DiffContext& context, Side side, hid_t dataset);

// Adds where a dataset's elements are; its index is read for that. Elements that lead to others in
// the file are read, so that an observer sees what they lead to; if they are many, the footprint
// becomes unbounded. Errors: those of HDF5.
absl::Status TakeDataFootprint(hid_t dataset, uint64_t base_offset, Footprint& footprint);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_DATASET_DIFF_H_
