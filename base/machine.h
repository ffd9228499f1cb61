// What a machine can say of itself beside its files (base/env.h), and what not each one can: who
// wants to know asks with dynamic_cast, and does without where there is no answer.
#ifndef H5MIRROR_BASE_MACHINE_H_
#define H5MIRROR_BASE_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace h5mirror {

// How large a file may be.
struct FileSizeMax {
  uint64_t bytes = INT64_MAX;          // by the file system; INT64_MAX: any size, or unknown
  uint64_t process_bytes = INT64_MAX;  // by a limit of this process (RLIMIT_FSIZE)
};

// Of an EnvTree that knows its file system.
class KnowsFileSizes {
 public:
  virtual ~KnowsFileSizes() = default;
  // Found by trying on a file without a name; where the file system has no such files, or says
  // nothing, it is unknown.
  virtual FileSizeMax FileSizes() = 0;
};

// How long the machine has run, asleep or not, and since which of its starts.
struct BootTime {
  std::string boot_id;
  absl::Duration since;
};

// Of an Env with a clock that nobody sets.
class KnowsBootTime {
 public:
  virtual ~KnowsBootTime() = default;
  // Unset: it has none after all.
  virtual std::optional<BootTime> SinceBoot() = 0;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_MACHINE_H_
