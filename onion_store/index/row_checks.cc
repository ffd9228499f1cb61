#include "onion_store/index/row_checks.h"

#include <cstdint>
#include <string_view>

#include "base/strings.h"
#include "onion_store/stage/stage_log.h"

namespace h5mirror::store {
namespace {

// Bounds of the numbers of a row; StageLocation (stage_log.h) has room for no more.
constexpr uint64_t kSegmentNumberMax = (uint64_t{1} << 23) - 1;
constexpr uint64_t kPackedBytesMax = kPageRunBytesMax;
constexpr uint64_t kPageNumberMax = INT64_MAX / 512;

// The value of a column, and its bounds.
struct Column {
  std::string_view name;
  uint64_t value;
  bool possible;
};

}  // namespace

absl::Status CheckFileRow(const SqliteQuery& query, const FileRow& row) {
  constexpr int64_t kNumberMax = INT64_MAX / 2;  // so that later numbers fit
  const uint32_t page_bytes = row.page_size_bytes;
  const auto number = [](int64_t value) { return static_cast<uint64_t>(value); };
  const Column columns[] = {
      {"page_size_bytes", page_bytes,
       page_bytes >= 512 && page_bytes <= 65536 && (page_bytes & (page_bytes - 1)) == 0},
      {"cut_reserved", number(row.cut_reserved), row.cut_reserved <= kNumberMax},
      {"durable_cut", number(row.durable_cut), row.durable_cut < row.cut_reserved},
      {"applied_cut", number(row.applied_cut),
       row.applied_cut >= 0 && row.applied_cut <= row.durable_cut},
      {"durable_size_bytes", row.durable_size_bytes, row.durable_size_bytes <= INT64_MAX},
      {"applied_size_bytes", row.applied_size_bytes, row.applied_size_bytes <= INT64_MAX},
      {"generation", number(row.generation), row.generation >= 1 && row.generation <= kNumberMax},
      {"applied_version", number(row.applied_version),
       row.applied_version >= 0 && row.applied_version <= kNumberMax},
      {"server_time_ns", number(row.server_time_ns), row.server_time_ns <= INT64_MAX - (1 << 30)},
      {"stage_first", row.stage_first, row.stage_first >= 1 && row.stage_first <= row.stage_last},
      {"stage_last", row.stage_last, row.stage_last <= kSegmentNumberMax},
      {"stage_end_bytes", row.stage_end_bytes, row.stage_end_bytes <= INT64_MAX},
      {"pages_segment", row.pages_segment,
       row.pages_segment >= 1 && row.pages_segment <= kSegmentNumberMax},
      {"pages_end_bytes", row.pages_end_bytes, row.pages_end_bytes <= INT64_MAX},
  };
  for (const Column& column : columns) {
    if (column.possible) continue;
    return query.Damaged(StrCat("its file has a ", column.name, " of ",
                                static_cast<int64_t>(column.value), ", which cannot be", kPutBack));
  }
  return absl::OkStatus();
}

absl::Status CheckVersion(const SqliteQuery& query, const VersionInfo& info) {
  if (info.version >= 1 && info.version <= INT64_MAX / 2 && info.cut >= 1 && info.generation >= 1 &&
      info.size_bytes <= INT64_MAX) {
    return absl::OkStatus();
  }
  return query.Damaged(StrCat("version ", info.version, " has the cut ", info.cut, ", generation ",
                              info.generation, " and ", info.size_bytes,
                              " bytes, one of which is out of range", kPutBack));
}

absl::Status CheckRun(const SqliteQuery& query, const PageRun& run) {
  if (run.level >= 0 && run.level <= kPageLevelMax && run.page <= kPageNumberMax &&
      run.page % run.page_count() == 0 && run.version >= 1 &&
      (run.segment <= kSegmentNumberMax || run.segment == PageRun::kLost) &&
      run.packed_bytes < kPackedBytesMax) {
    return absl::OkStatus();
  }
  return query.Damaged(StrCat("a row of pages has the page ", run.page, ", level ", run.level,
                              ", version ", run.version, " and segment ", run.segment,
                              ", one of which is out of range", kPutBack));
}

}  // namespace h5mirror::store
