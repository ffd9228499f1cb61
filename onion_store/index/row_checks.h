// Rows of an index that cannot be. What SQLite found whole may still be damaged: it has no
// checksums. Numbers that others count with are checked when they are read, so that no reader of
// rows meets any that cannot be.
#ifndef H5MIRROR_ONION_STORE_INDEX_ROW_CHECKS_H_
#define H5MIRROR_ONION_STORE_INDEX_ROW_CHECKS_H_

#include "absl/status/status.h"
#include "onion_store/disk/sqlite.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// kDataLoss: a number of the row cannot be. The message names the index, the number and the way
// out. `query`: it gave the row.
absl::Status CheckFileRow(const SqliteQuery& query, const FileRow& row);
absl::Status CheckVersion(const SqliteQuery& query, const VersionInfo& info);
absl::Status CheckRun(const SqliteQuery& query, const PageRun& run);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_INDEX_ROW_CHECKS_H_
