#include "rpc/time_spec.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/civil_time.h"
#include "base/strings.h"
#include "rpc/time_words.h"

namespace h5mirror::rpc {
namespace {

// Takes what `form` describes off the front of `text`: 'd' is a digit, the rest stands for itself.
bool Take(std::string_view form, std::string_view* text) {
  if (text->size() < form.size()) return false;
  for (size_t i = 0; i < form.size(); ++i) {
    const char c = (*text)[i];
    if (form[i] == 'd' ? !absl::ascii_isdigit(static_cast<unsigned char>(c)) : c != form[i]) {
      return false;
    }
  }
  text->remove_prefix(form.size());
  return true;
}

bool TakeDigits(std::string_view* text) {
  bool any = false;
  while (Take("d", text)) any = true;
  return any;
}

enum class Zone { kNamed, kNone };

struct Form {
  std::string format;  // for absl::ParseTime
  Zone zone = Zone::kNamed;
};

absl::Status NoTime(std::string_view text) {
  return absl::InvalidArgumentError(StrCat("time '", text, "': a time is ", kTimeForm));
}

absl::Status NoSuchDay(std::string_view text) {
  return absl::InvalidArgumentError(StrCat("time '", text, "': there is no such day or hour"));
}

TimeSpec Moment(absl::Time time, std::string local_text) {
  return {time, std::move(local_text), time};
}

TimeSpec WholeDay(absl::CivilDay day, absl::TimeZone zone, std::string_view text) {
  return {absl::FromCivil(day + 1, zone) - absl::Nanoseconds(1), std::string(text),
          absl::FromCivil(day, zone)};
}

// absl::ParseTime alone would take spaces, signs and single digits.
absl::StatusOr<Form> FormOf(std::string_view text) {
  const absl::Status wrong = NoTime(text);
  Form form{"%Y-%m-%dT%H:%M"};
  if (!Take("dddd-dd-ddTdd:dd", &text)) return wrong;
  if (Take(":dd", &text)) {
    form.format += ":%E*S";
    if (Take(".", &text) && !TakeDigits(&text)) return wrong;
  }
  if (text.empty()) {
    form.zone = Zone::kNone;
  } else if (Take("Z", &text) || Take("+dd:dd", &text) || Take("-dd:dd", &text)) {
    form.format += "%Ez";
  }
  if (!text.empty()) return wrong;
  return form;
}

// "2026-11-03".
bool IsDate(std::string_view text) { return Take("dddd-dd-dd", &text) && text.empty(); }

absl::StatusOr<TimeSpec> ParseDate(std::string_view text, absl::TimeZone zone) {
  absl::Time midnight;
  std::string error;
  if (!absl::ParseTime("%Y-%m-%d", ToAbsl(text), absl::UTCTimeZone(), &midnight, &error)) {
    return NoSuchDay(text);
  }
  return WholeDay(absl::ToCivilDay(midnight, absl::UTCTimeZone()), zone, text);
}

absl::StatusOr<TimeSpec> ParseStamp(std::string_view text, absl::TimeZone zone) {
  std::string stamp(text);
  if (std::string_view rest = text; Take("dddd-dd-dd dd", &rest)) stamp[10] = 'T';
  const absl::StatusOr<Form> form = FormOf(stamp);
  if (!form.ok()) return NoTime(text);
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(form->format, stamp, zone, &time, &error)) return NoSuchDay(text);
  return Moment(time, form->zone == Zone::kNone ? std::string(text) : "");
}

}  // namespace

absl::StatusOr<TimeSpec> ParseTimeSpec(std::string_view text, absl::TimeZone zone, absl::Time now) {
  if (IsDate(text)) return ParseDate(text, zone);
  const std::optional<SpokenTime> spoken = ParseTimeWords(text, zone, now);
  if (!spoken.has_value()) return ParseStamp(text, zone);
  if (spoken->moment.has_value()) return Moment(*spoken->moment, std::string(text));
  if (!spoken->of_day.has_value()) return WholeDay(spoken->day, zone, text);
  return Moment(absl::FromCivil(*spoken->of_day, zone), std::string(text));
}

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

std::string MeaningOf(const TimeSpec& spec) {
  std::string text = StrCat(spec.local_text, " is ", UtcText(spec.begin));
  if (spec.time != spec.begin) text += StrCat(" to ", UtcText(spec.time + absl::Nanoseconds(1)));
  return text;
}

}  // namespace h5mirror::rpc
