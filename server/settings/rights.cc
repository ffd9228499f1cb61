#include "server/settings/rights.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr std::pair<Right, std::string_view> kNames[] = {{Right::kRead, "read"},
                                                         {Right::kWrite, "write"},
                                                         {Right::kRestore, "restore"},
                                                         {Right::kDelete, "delete"},
                                                         {Right::kOperate, "operate"}};

}  // namespace

std::string_view NameOf(Right right) {
  for (const auto& [each, name] : kNames) {
    if (each == right) return name;
  }
  return "?";
}

std::vector<std::string> Rights::Names() const {
  std::vector<std::string> names;
  for (const auto& [right, name] : kNames) {
    if (Has(right)) names.emplace_back(name);
  }
  return names;
}

std::string Rights::ToString() const {
  return empty() ? std::string("none") : absl::StrJoin(Names(), ",");
}

absl::StatusOr<Rights> Rights::Parse(std::string_view text) {
  Rights rights;
  for (absl::string_view word : absl::StrSplit(ToAbsl(text), ',')) {
    if (word == "admin") {
      for (const Right each : {Right::kRestore, Right::kDelete, Right::kOperate}) rights.Add(each);
      continue;
    }
    const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                     [&](const auto& pair) { return pair.second == ToStd(word); });
    if (found == std::end(kNames)) {
      return absl::InvalidArgumentError(
          StrCat("right \"", ToStd(word),
                 "\": a comma-separated list of read, write, restore, delete, operate; admin "
                 "stands for the last three"));
    }
    rights.Add(found->first);
  }
  return rights;
}

}  // namespace h5mirror::server
