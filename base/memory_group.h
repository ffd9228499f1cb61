// The memory limit of this process's control group, as systemd's MemoryMax= and containers set it.
// All processes of the group share it.
#ifndef H5MIRROR_BASE_MEMORY_GROUP_H_
#define H5MIRROR_BASE_MEMORY_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace h5mirror {

// The least limit, in bytes, of the process's group and of the groups above it. Nullopt: there is
// no limit, or it cannot be known (control groups of version 1). The arguments are for tests.
std::optional<uint64_t> MemoryLimitOfGroup(
    const std::filesystem::path& of_process = "/proc/self/cgroup",
    const std::filesystem::path& groups = "/sys/fs/cgroup");

// A warning for the operator: with `setting` = `bytes` the process needs more memory than its group
// has. Nullopt: the memory is enough.
std::optional<std::string> MemoryLimitWarning(std::string_view setting, uint64_t bytes,
                                              uint64_t needed_bytes,
                                              std::optional<uint64_t> limit_bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_MEMORY_GROUP_H_
