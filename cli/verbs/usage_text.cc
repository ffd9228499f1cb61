#include "cli/verbs/usage_text.h"

#include <string_view>

#include "base/human.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

constexpr double kNearly = 0.9;

// The number with its unit.
std::string Quantity(std::string_view what, uint64_t value) {
  if (what == "bandwidth") return StrCat(HumanBytes(value), "/s");
  if (what.ends_with("bytes")) return HumanBytes(value);
  return what == "calls" ? StrCat(value, "/s") : StrCat(value);
}

// A quota of removed files needs no warning: the oldest are deleted by the server.
bool IsNearlyUsedUp(const v1::Amount& amount) {
  if (amount.what().starts_with("removed_")) return false;
  return amount.has_limit() && amount.limit() > 0 &&
         static_cast<double>(amount.used()) >= kNearly * static_cast<double>(amount.limit());
}

// `has_refused`: refusals are counted there.
template <typename Amounts>
Json AmountsToJson(const Amounts& amounts, bool has_refused) {
  Json array = Json::array();
  for (const v1::Amount& amount : amounts) {
    array.push_back(Json{{"what", amount.what()},
                         {"used", amount.used()},
                         {"limit", amount.has_limit() ? Json(amount.limit()) : Json(nullptr)},
                         {"refused", has_refused ? Json(amount.refused()) : Json(nullptr)}});
  }
  return array;
}

}  // namespace

std::string AmountText(const v1::Amount& amount) {
  const std::string used = StrCat(amount.what(), " ", Quantity(amount.what(), amount.used()));
  return amount.has_limit() ? StrCat(used, " of ", Quantity(amount.what(), amount.limit())) : used;
}

std::vector<std::string> NearlyUsedUp(const v1::Usage& usage) {
  std::vector<std::string> texts;
  for (const v1::Amount& amount : usage.caller().amounts()) {
    if (IsNearlyUsedUp(amount)) texts.push_back(AmountText(amount));
  }
  for (const v1::SpaceUse& space : usage.spaces()) {
    for (const v1::Amount& amount : space.amounts()) {
      if (IsNearlyUsedUp(amount)) {
        texts.push_back(StrCat(PlaceText(space), ": ", AmountText(amount)));
      }
    }
  }
  return texts;
}

std::string PlaceText(const v1::SpaceUse& space) {
  return space.directory().empty() ? "all files" : space.directory();
}

std::string CallerText(const v1::CallerUse& caller) {
  if (caller.name().empty()) return "a caller without a name";
  return caller.issuer().empty() ? caller.name() : StrCat(caller.issuer(), " ", caller.name());
}

Json UsageToJson(const v1::Usage& usage) {
  const v1::CallerUse& caller = usage.caller();
  Json spaces = Json::array();
  for (const v1::SpaceUse& space : usage.spaces()) {
    spaces.push_back(Json{{"directory", space.directory()},
                          {"table", space.table()},
                          {"amounts", AmountsToJson(space.amounts(), /*has_refused=*/false)}});
  }
  return Json{{"issuer", caller.issuer()},
              {"name", caller.name()},
              {"table", caller.table()},
              {"amounts", AmountsToJson(caller.amounts(), /*has_refused=*/true)},
              {"spaces", std::move(spaces)}};
}

}  // namespace h5mirror::tools
