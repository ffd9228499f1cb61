// Checks of the rows of an index. SQLite has no checksums, so a database that it finds whole may
// still have damaged numbers. Each number that is used in arithmetic is checked when it is read. So
// no reader of rows gets a number out of its range.
#ifndef H5MIRROR_ONION_STORE_INDEX_ROW_CHECKS_H_
#define H5MIRROR_ONION_STORE_INDEX_ROW_CHECKS_H_

#include "absl/status/status.h"
#include "onion_store/disk/sqlite.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// kDataLoss: a number of the row is out of its range. The message names the index, the number and
// the way out. `query`: the query that gave the row.
absl::Status CheckFileRow(const SqliteQuery& query, const FileRow& row);
absl::Status CheckVersion(const SqliteQuery& query, const VersionInfo& info);
absl::Status CheckRun(const SqliteQuery& query, const PageRun& run);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_INDEX_ROW_CHECKS_H_
