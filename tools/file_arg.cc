#include "tools/file_arg.h"

#include <errno.h>

#include "absl/strings/match.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/embedded_server.h"

namespace h5mirror::tools {
namespace {

// As the kernel's.
constexpr int kLinksMax = 40;

// Forms that no name under a root has.
bool IsPathOnly(const std::string& text) {
  return absl::StartsWith(text, "/") || absl::StartsWith(text, "./") ||
         absl::StartsWith(text, "../");
}

// The store's, with no server between.
bool HasHistoryBeside(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(RecordDirectory(path) / "index", error);
}

// Who replaces a file by its link's path would replace the link.
absl::StatusOr<std::string> FollowLink(const std::string& path) {
  std::error_code error;
  std::filesystem::path real = path;
  for (int links = 0; std::filesystem::is_symlink(real, error); ++links) {
    // The file itself may be gone.
    real = real.parent_path() / std::filesystem::read_symlink(real, error);
    if (!error && links < kLinksMax) continue;
    return ErrnoToStatus(error ? error.value() : ELOOP, StrCat("follow the link ", path));
  }
  return real.string();
}

absl::StatusOr<FileArg> LocalWithRecord(const std::string& path) {
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

}  // namespace

absl::StatusOr<FileArg> ResolveLocalArg(const std::string& given) {
  H5M_ASSIGN_OR_RETURN(const std::string path, FollowLink(given));
  absl::StatusOr<FileArg> local = LocalWithRecord(path);
  if (!local.ok() || local->record.has_value() || !HasHistoryBeside(path)) return local;
  return absl::FailedPreconditionError(
      StrCat(path, " has its history beside it (", RecordDirectory(path).string(),
             ") and is mirrored nowhere: move both below a server's root to keep its versions, or "
             "h5mirror export it to a file of its own and push that"));
}

absl::StatusOr<FileArg> ResolveFileArg(const std::string& text) {
  if (text.empty()) return absl::InvalidArgumentError("FILE is empty");
  absl::StatusOr<FileArg> local = LocalWithRecord(text);
  if (!local.ok() || local->record.has_value()) return local;
  if (HasHistoryBeside(text)) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(text, error).lexically_normal();
    local->server = EmbeddedAddress(path);
    local->name = std::filesystem::weakly_canonical(path, error).filename().string();
    return local;
  }
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
