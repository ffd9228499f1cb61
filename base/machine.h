// Facts about the machine that not every Env or EnvTree (base/env.h) knows. A caller asks with
// dynamic_cast, and must work without an answer.
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
  // Finds the limit by trying it on a nameless file. Unknown: the file system has no such files, or
  // gives no answer.
  virtual FileSizeMax FileSizes() = 0;
};

// Implemented by an EnvTree whose files are on other machines. A thread in one of its calls waits
// for the network, and needs no core of this machine.
class IsRemote {
 public:
  virtual ~IsRemote() = default;
};

// The time since the boot, suspended time included, and the boot's id.
struct BootTime {
  std::string boot_id;
  absl::Duration since;
};

// Implemented by an Env with a clock that nobody can set.
class KnowsBootTime {
 public:
  virtual ~KnowsBootTime() = default;
  // Unset: this Env has no such clock.
  virtual std::optional<BootTime> SinceBoot() = 0;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_MACHINE_H_
