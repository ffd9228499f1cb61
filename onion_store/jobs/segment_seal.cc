#include "onion_store/jobs/segment_seal.h"

#include "base/status_macros.h"

namespace h5mirror::store {

absl::StatusOr<std::optional<FileRow>> SealNewest(VersionIndex& index, PageSegments& pages,
                                                  FileRow row) {
  if (pages.end_bytes() == 0) return std::nullopt;
  H5M_RETURN_IF_ERROR(pages.Sync());  // Records that a failed apply left, without rows.
  row.pages_segment = pages.segment() + 1;
  row.pages_end_bytes = 0;
  H5M_RETURN_IF_ERROR(index.WriteFileRow(row));
  pages.Rotate();
  return row;
}

}  // namespace h5mirror::store
