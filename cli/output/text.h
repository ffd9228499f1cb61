// Values as people read them: times in their own zone, text that others wrote.
#ifndef H5MIRROR_CLI_OUTPUT_TEXT_H_
#define H5MIRROR_CLI_OUTPUT_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/utf8.h"  // Printable()
#include "h5mirror/v1/types.pb.h"
#include "rpc/timestamp.h"

namespace h5mirror::tools {

using rpc::FromProto;
using rpc::ToProto;

// "2026-11-03 14:00:00 CET"; "-" for an infinite time.
std::string LocalTime(absl::Time time, absl::TimeZone zone);

// RFC 3339 in UTC, "2026-11-03T13:00:00.000000000Z": exact, so that a version's time names that
// version. Empty for an infinite time.
std::string UtcTime(absl::Time time);

// The user that made a version: the authenticated user, or the claimed one, marked; "-" where
// neither is known.
std::string UserOf(const v1::Version& version);

// The source of a version that came from another file: "run.h5@12, taken over at 2026-11-03
// 14:00:00 CET by ada (unverified)". Empty: not set.
std::string SourceText(const v1::SourceVersion& source, absl::TimeZone zone);

// Columns that UTF-8 text takes, one for each code point.
size_t DisplayWidth(std::string_view text);

// As one word of a command that is to be pasted into a shell.
std::string ShellWord(const std::string& word);

// The first `columns` columns of `text`, the last one a '~' where something was cut off.
std::string Clip(std::string_view text, size_t columns);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_TEXT_H_
