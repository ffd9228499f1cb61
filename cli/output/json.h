// The documents that --json prints. Keys are part of the interface: they are listed in
// h5mirror.1.md, and are added to but never renamed.
#ifndef H5MIRROR_CLI_OUTPUT_JSON_H_
#define H5MIRROR_CLI_OUTPUT_JSON_H_

#include "absl/time/time.h"
#include "base/local_record.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/server.pb.h"
#include "h5mirror/v1/types.pb.h"
#include "nlohmann/json.hpp"

namespace h5mirror::tools {

// Keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

// A time as RFC 3339 in UTC, or null.
Json TimeToJson(absl::Time time);
Json SourceToJson(const v1::SourceVersion& source);
Json VersionToJson(const v1::Version& version);
Json SummaryToJson(const v1::FileSummary& summary);
Json StatusToJson(const v1::FileStatus& status);
Json RecordToJson(const LocalRecord& record);
Json ServerToJson(const v1::GetServerResponse& server, std::string_view address);

// "clean", "open", "behind", "diverged".
std::string_view RecordStateName(RecordState state);

// The text; bytes that are not UTF-8 (a file's name may be any) come as U+FFFD.
std::string Dump(const Json& json);
// The same on one line.
std::string DumpLine(const Json& json);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_JSON_H_
