// How much memory the kernel lets this process and its neighbours have: the control group's limit,
// as systemd's MemoryMax= and containers set it.
#ifndef H5MIRROR_BASE_MEMORY_GROUP_H_
#define H5MIRROR_BASE_MEMORY_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace h5mirror {

// The least limit of the process's group and those above it, in bytes. Nullopt: there is none, or
// it cannot be known (control groups of version 1). The arguments are for tests.
std::optional<uint64_t> MemoryLimitOfGroup(
    const std::filesystem::path& of_process = "/proc/self/cgroup",
    const std::filesystem::path& groups = "/sys/fs/cgroup");

// What to tell an operator whose process needs more than its group has, with `setting` = `bytes`;
// nullopt: nothing.
std::optional<std::string> MemoryLimitWarning(std::string_view setting, uint64_t bytes,
                                              uint64_t needed_bytes,
                                              std::optional<uint64_t> limit_bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_MEMORY_GROUP_H_
