#include "cluster/registry.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace h5mirror::cluster {

absl::Status CheckChange(absl::Span<const Expectation> expected,
                         absl::Span<const NewText> changes) {
  std::set<std::string_view> seen;
  for (const Expectation& each : expected) {
    if (each.name.empty()) return absl::InvalidArgumentError("the registry has no empty name");
    if (each.text.has_value() && each.text->empty()) {
      return absl::InvalidArgumentError(StrCat("the registry has no empty text for ", each.name));
    }
    if (!seen.insert(each.name).second) {
      return absl::InvalidArgumentError(StrCat(each.name, " is expected twice"));
    }
  }
  seen.clear();
  for (const NewText& each : changes) {
    if (each.name.empty() || each.text.empty()) {
      return absl::InvalidArgumentError(
          StrCat("the registry takes no empty name or text: \"", each.name, "\""));
    }
    if (!seen.insert(each.name).second) {
      return absl::InvalidArgumentError(StrCat(each.name, " is set twice"));
    }
  }
  return absl::OkStatus();
}

std::optional<std::string> TextOf(const RegistryView& view, const std::string& name) {
  const auto found = view.find(name);
  if (found == view.end()) return std::nullopt;
  return found->second;
}

bool Holds(const RegistryView& view, absl::Span<const Expectation> expected) {
  return std::all_of(expected.begin(), expected.end(),
                     [&](const Expectation& each) { return TextOf(view, each.name) == each.text; });
}

}  // namespace h5mirror::cluster
