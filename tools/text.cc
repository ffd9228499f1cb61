#include "tools/text.h"

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::tools {
namespace {

// C0, DEL, and C1 (two bytes in UTF-8, 0xc2 0x80..0x9f).
bool IsControl(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead < 0x20 || lead == 0x7f;
  return sequence.size() == 2 && lead == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

bool StartsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

absl::Time FromProto(const google::protobuf::Timestamp& timestamp) {
  if (timestamp.seconds() == 0 && timestamp.nanos() == 0) return absl::InfinitePast();
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const timespec spec = absl::ToTimespec(time);
  timestamp.set_seconds(spec.tv_sec);
  timestamp.set_nanos(static_cast<int32_t>(spec.tv_nsec));
  return timestamp;
}

std::string LocalTime(absl::Time time, absl::TimeZone zone) {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", time, zone);
}

std::string UtcTime(absl::Time time) {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

std::string UserOf(const v1::Version& version) {
  if (!version.verified_user().empty()) return version.verified_user();
  if (version.writer().claimed_user().empty()) return "-";
  return StrCat(version.writer().claimed_user(), " (unverified)");
}

std::string Printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    if (length == 0 || IsControl(text.substr(0, length))) {
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    } else {
      result.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return result;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (char c : text) width += StartsCodePoint(c) ? 1 : 0;
  return width;
}

std::string Clip(std::string_view text, size_t columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (StartsCodePoint(text[i]) && width++ == columns - 1) {
      return std::string(text.substr(0, i)) + "~";
    }
  }
  return std::string(text);
}

}  // namespace h5mirror::tools
