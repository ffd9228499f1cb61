#include "tools/time_spec.h"

#include "absl/strings/ascii.h"
#include "base/strings.h"

namespace h5mirror::tools {
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

// absl::ParseTime alone would take spaces, signs and single digits.
absl::StatusOr<Form> FormOf(std::string_view text) {
  const absl::Status wrong =
      absl::InvalidArgumentError(StrCat("time '", text, "': a time is ", kTimeForm));
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

}  // namespace

absl::StatusOr<TimeSpec> ParseTimeSpec(std::string_view text, absl::TimeZone zone) {
  const absl::StatusOr<Form> form = FormOf(text);
  if (!form.ok()) return form.status();
  TimeSpec spec;
  std::string error;
  if (!absl::ParseTime(form->format, ToAbsl(text), zone, &spec.time, &error)) {
    return absl::InvalidArgumentError(StrCat("time '", text, "': there is no such day or hour"));
  }
  if (form->zone == Zone::kNone) spec.local_text = std::string(text);
  return spec;
}

void NoteLocalTime(Context& context, const TimeSpec& spec) {
  if (spec.local_text.empty()) return;
  context.Note(StrCat(spec.local_text, " is ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", spec.time, absl::UTCTimeZone())));
}

}  // namespace h5mirror::tools
