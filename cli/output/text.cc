#include "cli/output/text.h"

#include "absl/strings/str_replace.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

bool StartsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

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

std::string SourceText(const v1::SourceVersion& source, absl::TimeZone zone) {
  if (source.version() == 0) return "";
  const bool is_fork = source.kind() == v1::SOURCE_KIND_FORK;
  std::string text =
      StrCat(source.name(), "@", source.version(), is_fork ? ", forked at " : ", taken over at ",
             LocalTime(FromProto(source.server_time()), zone));
  if (!source.verified_user().empty()) {
    StrAppend(&text, " by ", source.verified_user());
  } else if (!source.claimed_user().empty()) {
    StrAppend(&text, " by ", source.claimed_user(), " (unverified)");
  }
  return text;
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

std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace h5mirror::tools
