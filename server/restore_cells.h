// The cells that the archive of a cluster has, for `h5mirrord restore-root`.
#ifndef H5MIRROR_SERVER_RESTORE_CELLS_H_
#define H5MIRROR_SERVER_RESTORE_CELLS_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "onion_store/object_store.h"

namespace h5mirror::server {

inline constexpr absl::Duration kRestoreCallTimeout = absl::Seconds(60);

// A part of the archive `url_text`: "cells/lab". Errors: as archive::OpenArchive().
absl::StatusOr<std::unique_ptr<store::ObjectStore>> OpenArchivePart(const std::string& url_text,
                                                                    const std::string& part);
// The cells of an archive of a cluster; none: it is that of one root. Goes over all its objects.
absl::StatusOr<std::set<std::string>> ListCells(store::ObjectStore& archive);
// kFailedPrecondition: a cell lies in another one. Each would be a root in the other one's.
absl::Status CheckCellsApart(const std::set<std::string>& cells);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_RESTORE_CELLS_H_
