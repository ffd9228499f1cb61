#include "tools/file_arg.h"
#include "base/strings.h"

#include "absl/strings/match.h"

namespace h5mirror::tools {
namespace {

// Forms that no name under a root has.
bool IsPathOnly(const std::string& text) {
  return absl::StartsWith(text, "/") || absl::StartsWith(text, "./") ||
         absl::StartsWith(text, "../");
}

}  // namespace

absl::StatusOr<FileArg> ResolveLocalArg(const std::string& path) {
  FileArg result;
  result.local = path;
  absl::StatusOr<LocalRecord> record = ReadLocalRecord(result.local);
  if (record.ok()) {
    result.name = record->name;
    result.server = record->server;
    result.record = *std::move(record);
  } else if (!absl::IsNotFound(record.status())) {
    return record.status();
  }
  return result;
}

absl::StatusOr<FileArg> ResolveFileArg(const std::string& text) {
  if (text.empty()) return absl::InvalidArgumentError("FILE is empty");
  absl::StatusOr<FileArg> local = ResolveLocalArg(text);
  if (!local.ok() || local->record.has_value()) return local;
  if (IsPathOnly(text)) {
    return absl::NotFoundError(
        StrCat(text, ": no record of a mirror beside it (", RecordDirectory(text).string(),
               "/client.json); give the file's name under the server's root, see h5mirror ls"));
  }
  FileArg result;
  result.name = text;
  return result;
}

}  // namespace h5mirror::tools
