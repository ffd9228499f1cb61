// Compares the heads of generations with their sums: docs/design/036-reading-a-version.md.
#ifndef H5MIRROR_ONION_STORE_JOBS_HEAD_CHECK_H_
#define H5MIRROR_ONION_STORE_JOBS_HEAD_CHECK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/verify_findings.h"

namespace h5mirror::store {

// Not thread-safe: the caller has the file's work lock, so that head and sums are of one cut.
class HeadCheck {
 public:
  // All must outlive this.
  HeadCheck(VerifySource& file, VersionIndex& index, VerifyFindings& findings)
      : file_(file), index_(index), findings_(findings) {}

  // `generations`: those to check, the last one first.
  void Start(std::vector<int64_t> generations) { generations_ = std::move(generations); }
  // Checks some MiB. False: all are checked.
  absl::StatusOr<bool> Step();

 private:
  // True: the last one of generations_ is open. False: there is nothing to compare.
  absl::StatusOr<bool> Open();
  void Next();
  // One past the last byte of the head that its sums cover.
  absl::StatusOr<uint64_t> EndBytes();
  // The first page at or after `page` that is not a hole both of the head and of its sums.
  absl::StatusOr<uint64_t> NextPage(uint64_t page);
  // Compares the pages [first, end) of a head that has `end_bytes` bytes. Returns how many bytes
  // it compared.
  absl::StatusOr<uint64_t> Compare(uint64_t first, uint64_t end, uint64_t end_bytes);
  absl::Status Differs(uint64_t page, uint32_t want, uint32_t found);

  VerifySource& file_;
  VersionIndex& index_;
  VerifyFindings& findings_;
  std::vector<int64_t> generations_;
  std::shared_ptr<Generation> open_;  // the last one of generations_
  uint64_t next_page_ = 0;            // of it
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_HEAD_CHECK_H_
