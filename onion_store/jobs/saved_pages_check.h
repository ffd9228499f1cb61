// Compares the records of saved pages with the rows of the index that name them:
// docs/design/036-reading-a-version.md.
#ifndef H5MIRROR_ONION_STORE_JOBS_SAVED_PAGES_CHECK_H_
#define H5MIRROR_ONION_STORE_JOBS_SAVED_PAGES_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/jobs/archive_check.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/verify_findings.h"
#include "onion_store/pages/page_segments.h"

namespace h5mirror::store {

// Not thread-safe: the caller has the file's work lock, so that rows and records are of one moment.
class SavedPagesCheck {
 public:
  // All must outlive this. `archive` has the segments that are not on the disk.
  SavedPagesCheck(VerifySource& file, VersionIndex& index, PageSegments& pages,
                  const ArchiveCheck& archive, VerifyFindings& findings)
      : file_(file), index_(index), pages_(pages), archive_(archive), findings_(findings) {}

  // Checks some records. False: all are checked.
  absl::StatusOr<bool> Step();

 private:
  struct LostPages {
    int64_t generation = 0;
    uint64_t first = 0, end = 0;
    Readers readers;
  };

  // Whether such a row is possible: its level, its first page and its segment.
  bool IsSane(const PageRun& run) const;
  // Returns the bytes that were checked.
  absl::StatusOr<uint64_t> CheckRow(const RunOfGeneration& row);
  // Reports the damage of `row`. False: no report, because the row was moved since it was looked
  // up, and was checked at its new place.
  absl::StatusOr<bool> ReportRow(const RunOfGeneration& row, DamagePlace place, std::string file,
                                 std::string_view wrong);
  // Lost pages come in thousands, one row each: those that lie side by side are one finding.
  absl::Status NoteLost(const RunOfGeneration& row);
  void ReportLost();

  VerifySource& file_;
  VersionIndex& index_;
  PageSegments& pages_;
  const ArchiveCheck& archive_;
  VerifyFindings& findings_;
  PagesCursor cursor_;
  std::vector<RunOfGeneration> rows_;  // looked up and not checked yet, the next one last
  bool more_rows_ = true;              // in the index
  std::optional<LostPages> lost_;      // the last ones, not reported yet
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_SAVED_PAGES_CHECK_H_
