#include "server/settings/caller_set.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kNameMax = 256;

bool Has(const std::vector<std::string>& names, std::string_view wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

bool HasAll(const std::vector<std::string>& names, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const std::string& name) { return Has(names, name); });
}

}  // namespace

bool CallerSet::Takes(std::string_view name, std::string_view issuer,
                      const std::vector<std::string>& its_groups) const {
  if (is_for_all()) return true;
  if (name.empty()) return false;
  if (Has(users, name) || Has(users, StrCat(issuer, ":", name))) return true;
  return std::any_of(its_groups.begin(), its_groups.end(),
                     [&](const std::string& group) { return Has(groups, group); });
}

bool CallerSet::Covers(const CallerSet& other) const {
  if (is_for_all()) return true;
  if (other.is_for_all()) return false;
  return HasAll(users, other.users) && HasAll(groups, other.groups);
}

absl::Status AddCallerName(std::string_view text, std::vector<std::string>& names) {
  if (text.empty() || text.size() > kNameMax) {
    return absl::InvalidArgumentError(StrCat("a name has 1 to ", kNameMax, " bytes"));
  }
  names.emplace_back(text);
  return absl::OkStatus();
}

std::string ListOfNames(const std::vector<std::string>& names) {
  return StrCat("[\"", absl::StrJoin(names, "\", \""), "\"]");
}

}  // namespace h5mirror::server
