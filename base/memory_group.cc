#include "base/memory_group.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "base/human.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr std::string_view kVersionTwo = "0::/";

// The path of the process's group below the mount.
std::optional<std::string> GroupOf(const std::filesystem::path& of_process) {
  std::ifstream lines(of_process);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kVersionTwo)) return line.substr(kVersionTwo.size());
  }
  return std::nullopt;
}

std::optional<uint64_t> LimitIn(const std::filesystem::path& group) {
  std::ifstream file(group / "memory.max");
  std::string word;
  uint64_t bytes = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &bytes)) return std::nullopt;  // "max": none.
  return bytes;
}

}  // namespace

std::optional<uint64_t> MemoryLimitOfGroup(const std::filesystem::path& of_process,
                                           const std::filesystem::path& groups) {
  const std::optional<std::string> group = GroupOf(of_process);
  if (!group.has_value()) return std::nullopt;
  std::filesystem::path at = groups;
  std::optional<uint64_t> least = LimitIn(at);
  for (const std::filesystem::path& part : std::filesystem::path(*group)) {
    at /= part;
    const std::optional<uint64_t> limit = LimitIn(at);
    if (limit.has_value()) least = std::min(*limit, least.value_or(*limit));
  }
  return least;
}

std::optional<std::string> MemoryLimitWarning(std::string_view setting, uint64_t bytes,
                                              uint64_t needed_bytes,
                                              std::optional<uint64_t> limit_bytes) {
  if (!limit_bytes.has_value() || *limit_bytes >= needed_bytes) return std::nullopt;
  return StrCat("with ", setting, " = ", HumanBytes(bytes), " this process may need ",
                HumanBytes(needed_bytes), ", and its control group has ", HumanBytes(*limit_bytes),
                ": beyond that the kernel kills it; raise MemoryMax= of the unit, or lower ",
                setting);
}

}  // namespace h5mirror
