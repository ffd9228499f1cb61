// Compares a file's history with its checksums, while the file is read and written.
#ifndef H5MIRROR_ONION_STORE_VERIFY_H_
#define H5MIRROR_ONION_STORE_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The part `part` of `count` of the data, 1 <= part <= count. All parts together cover all of it.
struct VerifySubset {
  int64_t part = 1;
  int64_t count = 1;
};

enum class DamagePlace : uint8_t { kIndex, kHead, kStage, kPages };

struct Damage {
  DamagePlace place = DamagePlace::kIndex;
  std::string file;  // relative to the root
  uint64_t offset = 0;
  // The versions that read the damaged bytes, both ends included; 0, 0: none, or unknown.
  VersionNumber oldest = 0;
  VersionNumber newest = 0;
  std::string message;
};

struct VerifyProgress {
  std::vector<Damage> found;  // since the last step
  uint64_t checked_bytes = 0;
  uint64_t total_bytes = 0;  // about: the file may be written meanwhile
  // Why the file's copy in the archive was not looked at; empty: it was, or there is none.
  std::string left;
  bool done = false;
};

// One verification; the caller drives it. Not thread-safe; keeps its file alive.
class VerifyJob {
 public:
  virtual ~VerifyJob() = default;
  // Checks some mebibytes. Damage is a finding, not an error.
  // Errors: kUnavailable the file must be opened again; those of reading files.
  virtual absl::StatusOr<VerifyProgress> Step() = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_VERIFY_H_
