// The bytes that a verification has checked, and its findings:
// docs/design/036-reading-a-version.md.
#ifndef H5MIRROR_ONION_STORE_JOBS_VERIFY_FINDINGS_H_
#define H5MIRROR_ONION_STORE_JOBS_VERIFY_FINDINGS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "onion_store/index/version_index.h"
#include "onion_store/verify.h"

namespace h5mirror::store {

// The oldest and the newest version that read something; 0, 0: none, or all.
using Readers = std::pair<VersionNumber, VersionNumber>;

// Not thread-safe.
class VerifyFindings {
 public:
  explicit VerifyFindings(VerifySubset subset) : subset_(subset) {}

  // Whether the verification checks the part that `page` lies in.
  bool IsWanted(uint64_t page) const {
    return static_cast<int64_t>(page / kBlockPages % subset_.count) == subset_.part - 1;
  }
  // About how many of `bytes` the verification checks.
  uint64_t PartOf(uint64_t bytes) const { return bytes / static_cast<uint64_t>(subset_.count); }

  // `file`: relative to the root.
  void Report(DamagePlace place, std::string file, uint64_t offset, Readers readers,
              std::string message) {
    progress.found.push_back(
        {place, std::move(file), offset, readers.first, readers.second, std::move(message)});
  }

  VerifyProgress progress;

 private:
  const VerifySubset subset_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_VERIFY_FINDINGS_H_
