#include "rpc/time_words.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/human.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

using Words = absl::Span<const std::string>;

// The units that ParseLongDuration() has a letter for, by their other names.
struct UnitName {
  std::string_view word;
  std::string_view letter;
};
constexpr std::array<UnitName, 9> kUnits = {{{"sec", "s"},
                                             {"second", "s"},
                                             {"min", "m"},
                                             {"minute", "m"},
                                             {"hr", "h"},
                                             {"hour", "h"},
                                             {"day", "d"},
                                             {"week", "w"},
                                             {"wk", "w"}}};
// No version is older.
constexpr absl::Duration kLongest = absl::Hours(24 * 366 * 100);
constexpr std::array<std::string_view, 7> kWeekdays = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// "hours" is "h"; what is no name of a unit stays.
std::string UnitOf(std::string_view word) {
  std::string_view singular = word;
  if (singular.size() > 1 && singular.ends_with('s')) singular.remove_suffix(1);
  for (const UnitName& unit : kUnits) {
    if (unit.word == singular) return std::string(unit.letter);
  }
  return std::string(word);
}

// "2h", "3days" or "3", "days".
std::optional<absl::Duration> DurationOf(Words words) {
  std::string text;
  for (const std::string& word : words) {
    const size_t digits = word.find_first_not_of("0123456789");
    // "2-3 days" is not 23 days.
    const bool follows_number = !text.empty() && IsDigit(text.back());
    if (follows_number && (digits != 0 || word == "a" || word == "an")) return std::nullopt;
    if (word == "a" || word == "an") {
      text += "1";
    } else if (digits == std::string::npos) {
      text += word;
    } else {
      text += word.substr(0, digits) + UnitOf(std::string_view(word).substr(digits));
    }
  }
  const auto duration = ParseLongDuration(text);
  const bool is_one = !text.empty() && IsDigit(text.front()) && duration.ok();
  if (!is_one || *duration > kLongest) return std::nullopt;
  return *duration;
}

// Of "mon" or "monday"; nullopt: it is none.
std::optional<absl::Weekday> WeekdayOf(std::string_view word) {
  if (word.size() < 3) return std::nullopt;
  for (size_t i = 0; i < kWeekdays.size(); ++i) {
    const bool is_it = word == kWeekdays[i] || word == kWeekdays[i].substr(0, 3);
    if (is_it) return static_cast<absl::Weekday>(i);
  }
  return std::nullopt;
}

// Takes a day off the front.
std::optional<absl::CivilDay> TakeDay(absl::CivilDay today, Words* words) {
  const bool says_last = words->size() > 1 && words->front() == "last";
  if (says_last) words->remove_prefix(1);
  const std::string_view word = words->front();
  words->remove_prefix(1);
  if (const auto weekday = WeekdayOf(word); weekday.has_value()) {
    return absl::PrevWeekday(today, *weekday);
  }
  if (says_last) return std::nullopt;
  if (word == "today") return today;
  if (word == "yesterday") return today - 1;
  return std::nullopt;
}

// "14:00", "9:30" or "14:00:30".
std::optional<absl::CivilSecond> TimeOfDay(absl::CivilDay day, std::string_view word) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(word), ':');
  std::array<int32_t, 3> values{};
  constexpr std::array<int32_t, 3> kEnds = {24, 60, 60};
  if (parts.size() < 2 || parts.size() > values.size()) return std::nullopt;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool has_digits = !parts[i].empty() && parts[i].size() <= 2 &&
                            IsDigit(parts[i].front()) && IsDigit(parts[i].back());
    const bool is_number = has_digits && absl::SimpleAtoi(parts[i], &values[i]);
    if (!is_number || values[i] >= kEnds[i]) return std::nullopt;
  }
  return absl::CivilSecond(day.year(), day.month(), day.day(), values[0], values[1], values[2]);
}

}  // namespace

std::optional<SpokenTime> ParseTimeWords(std::string_view text, absl::TimeZone zone,
                                         absl::Time now) {
  const std::string lower = absl::AsciiStrToLower(ToAbsl(text));
  const std::vector<std::string> all = absl::StrSplit(lower, absl::ByAnyChar(" -_"));
  Words words = all;
  for (const std::string& word : words) {
    if (word.empty()) return std::nullopt;
  }
  if (words.size() == 1 && words[0] == "now") return SpokenTime{.moment = now};
  if (words.size() > 1 && words.back() == "ago") {
    const auto duration = DurationOf(words.subspan(0, words.size() - 1));
    if (!duration.has_value()) return std::nullopt;
    return SpokenTime{.moment = now - *duration};
  }
  const auto day = TakeDay(absl::ToCivilDay(now, zone), &words);
  if (!day.has_value() || words.size() > 1) return std::nullopt;
  SpokenTime spoken{.day = *day};
  if (words.empty()) return spoken;
  spoken.of_day = TimeOfDay(*day, words[0]);
  if (!spoken.of_day.has_value()) return std::nullopt;
  return spoken;
}

}  // namespace h5mirror::rpc
