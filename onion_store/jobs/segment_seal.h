// Ends the newest segment of saved pages, so that later records go to another one.
#ifndef H5MIRROR_ONION_STORE_JOBS_SEGMENT_SEAL_H_
#define H5MIRROR_ONION_STORE_JOBS_SEGMENT_SEAL_H_

#include <optional>

#include "absl/status/statusor.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/page_segments.h"

namespace h5mirror::store {

// `row`: the file's row. Returns the file's new row, durably. nullopt: the newest segment is empty,
// and stays in use. The caller has the file's work lock.
absl::StatusOr<std::optional<FileRow>> SealNewest(VersionIndex& index, PageSegments& pages,
                                                  FileRow row);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_SEGMENT_SEAL_H_
