#include "cli/context/file_arg.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "base/errno_status.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/embedded_server.h"

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

// A rename over the link's path would replace the link, not the file.
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

FileArg ArgOf(const std::string& path, FoundRecord found) {
  FileArg result;
  result.local = path;
  result.name = found.record.name;
  result.server = found.record.server;
  result.tag = std::move(found.place.tag);
  result.record = std::move(found.record);
  return result;
}

// Smaller is nearer to the file as it is.
int DistanceOf(const LocalRecord& record, const absl::StatusOr<FileStat>& now) {
  const bool is_of_now = now.ok() && record.stat == *now;
  if (is_of_now && record.state == RecordState::kClean) return 0;
  if (record.state == RecordState::kOpen) return 1;
  return is_of_now ? 2 : 3;
}

// Where the file has records, and none of them is of `server`.
FileArg NewMirror(const std::string& path, const std::string& server, const FileArg& other) {
  FileArg result;
  result.local = path;
  result.name = other.name;
  result.server = server;
  result.tag = ServerTag(server);
  return result;
}

absl::StatusOr<std::vector<FileArg>> LocalWithRecords(const std::string& path,
                                                      const WantedServer& server) {
  H5M_ASSIGN_OR_RETURN(std::vector<FoundRecord> records, FindLocalRecords(path));
  const absl::StatusOr<FileStat> now = StatFile(path);
  std::stable_sort(records.begin(), records.end(), [&](const auto& a, const auto& b) {
    return DistanceOf(a.record, now) < DistanceOf(b.record, now);
  });
  std::vector<FileArg> mirrors;
  for (FoundRecord& found : records) mirrors.push_back(ArgOf(path, std::move(found)));
  if (mirrors.empty()) {
    mirrors.emplace_back().local = path;
    return mirrors;
  }
  if (!server.has_value()) return mirrors;
  for (const FileArg& mirror : mirrors) {
    if (IsSameServer(mirror.server, *server)) return std::vector{mirror};
  }
  // The only mirror's record stands for any server that the user names, as its name may be another.
  if (mirrors.size() == 1 && mirrors[0].tag.empty()) return mirrors;
  return std::vector{NewMirror(path, *server, mirrors[0])};
}

absl::StatusOr<FileArg> LocalWithRecord(const std::string& path, const WantedServer& server) {
  H5M_ASSIGN_OR_RETURN(std::vector<FileArg> mirrors, LocalWithRecords(path, server));
  return std::move(mirrors.front());
}

}  // namespace

absl::StatusOr<std::vector<FileArg>> ResolveMirrorsOf(const std::string& given,
                                                      const WantedServer& server) {
  H5M_ASSIGN_OR_RETURN(const std::string path, FollowLink(given));
  absl::StatusOr<std::vector<FileArg>> mirrors = LocalWithRecords(path, server);
  if (!mirrors.ok() || !mirrors->front().name.empty() || !HasHistoryBeside(path)) return mirrors;
  return absl::FailedPreconditionError(
      StrCat(path, " has its history beside it (", RecordDirectory(path).string(),
             ") and is mirrored nowhere: move both below a server's root to keep its versions, or "
             "h5mirror export it to a file of its own and push that"));
}

absl::StatusOr<FileArg> ResolveLocalArg(const std::string& given, const WantedServer& server) {
  H5M_ASSIGN_OR_RETURN(std::vector<FileArg> mirrors, ResolveMirrorsOf(given, server));
  return std::move(mirrors.front());
}

absl::StatusOr<FileArg> ResolveFileArg(const std::string& text, const WantedServer& server) {
  if (text.empty()) return absl::InvalidArgumentError("FILE is empty");
  absl::StatusOr<FileArg> local = LocalWithRecord(text, server);
  if (!local.ok() || !local->name.empty()) return local;
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
