// How the archive of a server is.
#ifndef H5MIRROR_CLI_VERBS_ARCHIVE_TEXT_H_
#define H5MIRROR_CLI_VERBS_ARCHIVE_TEXT_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/output/json.h"
#include "h5mirror/v1/archive.pb.h"
#include "rpc/client_options.h"

namespace h5mirror::tools {

// nullopt: the server has no archive, is older than archives, or does not tell.
using ArchiveState = std::optional<v1::GetArchiveResponse>;

// `name`: a file whose objects are counted too.
ArchiveState ArchiveOf(const rpc::ClientOptions& server, const std::string& name = "");

// "/mnt/archive: answers; 3 segments, 700 MiB, archived since the server started".
std::string ArchiveText(const v1::GetArchiveResponse& archive, absl::TimeZone zone);

// Of a file that was named: "700 MiB in 3 objects".
std::string ArchivedText(const v1::GetArchiveResponse& archive);

Json ArchiveToJson(const v1::GetArchiveResponse& archive);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_ARCHIVE_TEXT_H_
