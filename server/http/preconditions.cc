#include "server/http/preconditions.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/hex.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kTagsMax = 256;
constexpr char kImfFixdate[] = "%a, %d %b %Y %H:%M:%S GMT";

std::string_view WithoutWeak(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  return tag;
}

bool NamesWeakly(std::string_view list, std::string_view tag) {
  const std::vector<std::string> tags = SplitEntityTags(list);
  return std::any_of(tags.begin(), tags.end(), [tag](const std::string& each) {
    return each == "*" || WithoutWeak(each) == tag;
  });
}

bool NamesStrongly(std::string_view list, std::string_view tag) {
  const std::vector<std::string> tags = SplitEntityTags(list);
  return std::any_of(tags.begin(), tags.end(),
                     [tag](const std::string& each) { return each == "*" || each == tag; });
}

// The time of `header` as a date that is to be compared; nullopt: it is not there, or no date.
std::optional<absl::Time> TimeIn(const std::optional<std::string>& header) {
  return header ? ParseHttpTime(*header) : std::nullopt;
}

absl::Time WholeSecond(absl::Time time) { return absl::FromUnixSeconds(absl::ToUnixSeconds(time)); }

// Digits alone, and not 0.
std::optional<int64_t> ParseNumber(absl::string_view text) {
  int64_t number = 0;
  const bool is_digits =
      !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!is_digits || !absl::SimpleAtoi(text, &number) || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

std::string Format(const EntityTag& tag) {
  const bool is_cut = tag.kind == EntityTag::Kind::kCut;
  return StrCat("\"", is_cut ? "c" : "v", tag.number, "-", HexOf(tag.file_id),
                is_cut ? StrCat("-", absl::StrCat(absl::Hex(tag.start_id, absl::kZeroPad16))) : "",
                "\"");
}

std::optional<EntityTag> ParseEntityTag(std::string_view text) {
  if (text.size() < 3 || text.front() != '"' || text.back() != '"') return std::nullopt;
  const std::string_view inner = text.substr(1, text.size() - 2);
  const std::vector<absl::string_view> parts = absl::StrSplit(ToAbsl(inner.substr(1)), '-');
  EntityTag tag;
  tag.kind = inner.front() == 'c' ? EntityTag::Kind::kCut : EntityTag::Kind::kVersion;
  const size_t parts_wanted = tag.kind == EntityTag::Kind::kCut ? 3 : 2;
  if (parts.size() != parts_wanted) return std::nullopt;
  const std::optional<int64_t> number = ParseNumber(parts[0]);
  const auto file_id = ParseHex16(ToStd(parts[1]));
  if (!number || !file_id.ok()) return std::nullopt;
  tag.number = *number;
  tag.file_id = *file_id;
  if (parts.size() == 3 && !absl::SimpleHexAtoi(parts[2], &tag.start_id)) return std::nullopt;
  // Only the form that Format() gives.
  return Format(tag) == text ? std::optional(tag) : std::nullopt;
}

std::vector<std::string> SplitEntityTags(std::string_view list) {
  std::vector<std::string> tags;
  std::string_view rest = list;
  while (!rest.empty() && tags.size() < kTagsMax) {
    const size_t begin = rest.find_first_not_of(" \t,");
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    if (rest.front() == '*') {
      tags.emplace_back("*");
      rest.remove_prefix(1);
      continue;
    }
    const size_t open = rest.starts_with("W/") ? 2 : 0;
    const size_t close =
        rest.size() > open && rest[open] == '"' ? rest.find('"', open + 1) : std::string_view::npos;
    if (close == std::string_view::npos) break;
    tags.emplace_back(rest.substr(0, close + 1));
    rest.remove_prefix(close + 1);
  }
  return tags;
}

std::string FormatHttpTime(absl::Time time) {
  return absl::FormatTime(kImfFixdate, time, absl::UTCTimeZone());
}

std::optional<absl::Time> ParseHttpTime(std::string_view text) {
  // absl also takes "infinite-future" for a time.
  if (text.starts_with("infinite")) return std::nullopt;
  for (const char* form : {kImfFixdate, "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    absl::Time time;
    if (absl::ParseTime(form, ToAbsl(text), absl::UTCTimeZone(), &time, nullptr)) return time;
  }
  return std::nullopt;
}

Verdict Decide(const Conditions& conditions, const EntityTag& tag, absl::Time modified) {
  const std::string text = Format(tag);
  if (conditions.if_match) {
    if (!NamesStrongly(*conditions.if_match, text)) return Verdict::kFailed;
  } else if (const auto since = TimeIn(conditions.if_unmodified_since); since) {
    if (WholeSecond(modified) > *since) return Verdict::kFailed;
  }
  if (conditions.if_none_match) {
    if (NamesWeakly(*conditions.if_none_match, text)) return Verdict::kNotModified;
  } else if (const auto since = TimeIn(conditions.if_modified_since); since) {
    if (WholeSecond(modified) <= *since) return Verdict::kNotModified;
  }
  return Verdict::kProceed;
}

bool CountsRange(const Conditions& conditions, const EntityTag& tag) {
  return !conditions.if_range || *conditions.if_range == Format(tag);
}

}  // namespace h5mirror::server
