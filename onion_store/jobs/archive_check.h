// Compares segments that are only in the archive with the index, and looks for the objects of the
// file's copy: docs/design/050-archive.md, "Verifying".
#ifndef H5MIRROR_ONION_STORE_JOBS_ARCHIVE_CHECK_H_
#define H5MIRROR_ONION_STORE_JOBS_ARCHIVE_CHECK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/object_scan.h"
#include "onion_store/jobs/verify_findings.h"
#include "onion_store/pages/listed_copies.h"
#include "onion_store/pages/page_segments.h"

namespace h5mirror::store {

// Not thread-safe.
class ArchiveCheck {
 public:
  // All must outlive this. Nothing may go from the disk into the archive while it lives.
  ArchiveCheck(VerifySource& file, VersionIndex& index, PageSegments& pages,
               VerifyFindings& findings)
      : file_(file), index_(index), pages_(pages), findings_(findings) {}

  // Finds out which segments are only in the archive. The caller has the file's work lock. Errors:
  // those of the index.
  absl::Status Start();
  // Whether segment `number` is only in the archive, so that nothing else checks its records.
  bool Has(uint64_t number) const { return away_.contains(number); }
  // Their bytes.
  uint64_t bytes() const { return bytes_; }

  // Checks some MiB. Waits for the archive: the caller holds no lock. False: all are checked.
  // Errors: kUnavailable, kDeadlineExceeded and others of the archive but damage, of segments;
  // those of the index.
  absl::StatusOr<bool> Step();

 private:
  // Damage of an object, whose readers are looked for.
  struct Found {
    ArchivedSegment segment;
    std::string message;
    PagesCursor cursor = {};
    Readers readers{0, 0};
    bool has_rows = false;
  };

  // Looks for the objects of the file's copy, as the archive lists them. If an object is lost, the
  // next copy begins anew. An archive that does not answer is noted.
  absl::Status CheckCopy();
  // The name of an object that is lost, or empty; nullopt: not all objects are listed yet.
  absl::StatusOr<std::optional<std::string>> LookForCopy(ObjectStore& store);
  absl::Status EndCopy(const std::string& lost);
  absl::Status ScanSome(const ArchivedSegment& segment);
  // Looks in some thousand rows for the versions that read the segment. Reports it at the end,
  // unless no row names the segment: then a prune has deleted it meanwhile.
  absl::Status FindReaders();

  VerifySource& file_;
  VersionIndex& index_;
  PageSegments& pages_;
  VerifyFindings& findings_;
  std::map<uint64_t, ArchivedSegment> away_;
  std::deque<uint64_t> todo_;  // segments to scan, the current one first
  std::optional<ObjectScan> scan_;
  std::optional<Found> found_;
  uint64_t bytes_ = 0;
  // Of the copy; empty: there is none, or it was looked at.
  std::string copy_prefix_;
  std::string list_next_;
  ListedCopies listed_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_ARCHIVE_CHECK_H_
