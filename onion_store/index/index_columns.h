// The columns of the index as numbers. On disk: docs/reference/format.md, "Index".
#ifndef H5MIRROR_ONION_STORE_INDEX_INDEX_COLUMNS_H_
#define H5MIRROR_ONION_STORE_INDEX_INDEX_COLUMNS_H_

#include "onion_store/disk/sqlite.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// Values of PRAGMA user_version: formats that older programs do not know.
constexpr int64_t kFormatDropped = 2;   // versions were dropped, see DropVersions()
constexpr int64_t kFormatPacked = 3;    // records are compressed
constexpr int64_t kFormatArchived = 4;  // segments may lie in an archive

// The column `offset` of `pages`.
constexpr int kOffsetBits = 36;
constexpr uint64_t OffsetColumn(uint64_t offset, uint32_t packed_bytes) {
  return offset | uint64_t{packed_bytes} << kOffsetBits;
}

// The columns page, version, segment and offset, from `column` on; unchecked.
inline PageRun ReadRun(const SqliteQuery& query, int column, int level) {
  const auto offset = static_cast<uint64_t>(query.Int64(column + 3));
  return {level,
          static_cast<uint64_t>(query.Int64(column)),
          query.Int64(column + 1),
          static_cast<uint64_t>(query.Int64(column + 2)),
          offset & ((uint64_t{1} << kOffsetBits) - 1),
          static_cast<uint32_t>(offset >> kOffsetBits)};
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_INDEX_INDEX_COLUMNS_H_
