// Facts about the machine that not every Env or EnvTree (base/env.h) has. A caller asks with
// dynamic_cast, and must do without if there is no answer.
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

// Implemented by an EnvTree that knows its file system.
class KnowsFileSizes {
 public:
  virtual ~KnowsFileSizes() = default;
  // Tries it on a file without a name. Unknown, if the file system has no such files, or no answer.
  virtual FileSizeMax FileSizes() = 0;
};

// Implemented by an EnvTree on other machines: a thread in one of its calls waits for a network,
// and needs no core of this one.
class IsRemote {
 public:
  virtual ~IsRemote() = default;
};

// The time since the boot, suspended time included, and the boot's id.
struct BootTime {
  std::string boot_id;
  absl::Duration since;
};

// Implemented by an Env with a clock that cannot be set.
class KnowsBootTime {
 public:
  virtual ~KnowsBootTime() = default;
  // Unset: this one has no such clock.
  virtual std::optional<BootTime> SinceBoot() = 0;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_MACHINE_H_
