#include "sync/push_plan.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "base/errno_status.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

bool IsHdf5(const fs::path& path) {
  OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return file.get() >= 0 && !error && LookAtHdf5(file.get(), size) != Hdf5State::kNotHdf5;
}

bool IsOurs(const std::string& file_name) {
  return absl::EndsWith(file_name, ".h5m") || absl::StrContains(file_name, ".broken-20") ||
         absl::StrContains(file_name, StrCat(kOldFileMark, "20")) ||
         absl::StrContains(file_name, ".part-");
}

// "run.h5" of a directory "run.h5.h5m" that records a mirror of a file that is not there.
std::optional<std::string> GoneFileOf(const fs::path& path) {
  const std::string name = path.string();
  if (!absl::EndsWith(name, ".h5m")) return std::nullopt;
  const std::string file = name.substr(0, name.size() - std::string_view(".h5m").size());
  std::error_code error;
  if (fs::symlink_status(file, error).type() != fs::file_type::not_found) return std::nullopt;
  const auto records = FindLocalRecords(file);
  return records.ok() && !records->empty() ? std::optional(file) : std::nullopt;
}

absl::Status Walk(const fs::path& directory, Content content, FilesToPush& found) {
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(directory, error);
  if (error) return ErrnoToStatus(error.value(), StrCat("list ", directory.string()));
  while (entry != fs::recursive_directory_iterator()) {
    const fs::path& path = entry->path();
    const fs::file_status status = entry->symlink_status(error);
    if (IsOurs(path.filename().string())) {
      entry.disable_recursion_pending();
      if (const auto gone = GoneFileOf(path)) found.gone.push_back(*gone);
    } else if (!error && fs::is_regular_file(status)) {
      if (content == Content::kAny || IsHdf5(path)) {
        found.files.push_back(path.string());
      } else {
        ++found.skipped;
      }
    }
    entry.increment(error);
    if (error) return ErrnoToStatus(error.value(), StrCat("list ", directory.string()));
  }
  return absl::OkStatus();
}

// The driver's name for a file after a change of its path, if the name follows the path: below a
// root, or behind a host's name.
std::optional<std::string> NameAfterRename(const std::string& name, const std::string& old_path,
                                           const std::string& path) {
  const std::string below_root = StrCat("/", name);
  if (absl::EndsWith(old_path, below_root)) {
    const std::string root = old_path.substr(0, old_path.size() - name.size());
    if (!absl::StartsWith(path, root)) return std::nullopt;
    return path.substr(root.size());
  }
  if (!absl::EndsWith(name, old_path)) return std::nullopt;
  return StrCat(name.substr(0, name.size() - old_path.size()), path);
}

absl::Status Renamed(const LocalFile& file, const std::string& from, const std::string& to) {
  return absl::FailedPreconditionError(
      StrCat(file.path().string(), " was renamed, and the server has it as ", from,
             " still: h5mirror mv ", from, " ", to,
             " renames it there with its history, then h5mirror resync --from local --name ", to,
             " ", file.path().string(), " sends what differs"));
}

}  // namespace

absl::Status CheckNoEdit(const LocalFile& file) {
  const std::string path = file.path().string();
  std::error_code error;
  const fs::path real = fs::canonical(file.path(), error);
  if (error) return ErrnoToStatus(error.value(), StrCat("resolve ", path));
  const uintmax_t bytes = fs::file_size(real.string() + ".h5m/journal", error);
  const bool is_none =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (is_none || (!error && bytes == 0)) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(
      path, ": an edit of it was broken off, and it may hold a part of that: h5edit --recover ",
      path, " finishes it, h5edit --recover --discard ", path, " takes it back"));
}

absl::Status CheckNotRenamed(rpc::Client& client, const std::string& name, const LocalFile& file,
                             const std::optional<LocalRecord>& record,
                             const std::optional<v1::FileStatus>& server) {
  // The inode tells it from a copy.
  if (!record || record->name != name || !record->stat.EqualsButName(file.stat())) {
    return absl::OkStatus();
  }
  const std::string file_id = ToByteString(record->file_id);
  if (!server) {
    if (record->renamed_from.empty()) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> old,
                         FindServerFile(client, record->renamed_from));
    if (!old || old->file_id() != file_id) return absl::OkStatus();
    return Renamed(file, record->renamed_from, name);
  }
  H5M_ASSIGN_OR_RETURN(const v1::Origin here, LocalOrigin(file.path()));
  const v1::Origin& origin = server->origin();
  if (server->file_id() != file_id || origin.machine_id() != here.machine_id() ||
      origin.path() == here.path()) {
    return absl::OkStatus();
  }
  const std::optional<std::string> now = NameAfterRename(name, origin.path(), here.path());
  return now ? Renamed(file, name, *now) : absl::OkStatus();
}

absl::StatusOr<std::string> MirrorName(const Context& context, const std::string& name,
                                       const std::string& root, const FileArg& arg) {
  if (!name.empty()) return name;
  if (!arg.name.empty()) return arg.name;
  if (!root.empty()) return DefaultName(arg.local, root);
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions client, context.Options(arg));
  return DefaultName(arg.local, client.root);
}

absl::StatusOr<std::optional<v1::FileStatus>> FindServerFile(rpc::Client& client,
                                                             const std::string& name) {
  v1::GetFileRequest request;
  request.set_name(name);
  absl::StatusOr<v1::FileStatus> status = client.GetFile(request, absl::Seconds(30));
  if (absl::IsNotFound(status.status())) return std::optional<v1::FileStatus>();
  H5M_RETURN_IF_ERROR(status.status());
  return std::optional<v1::FileStatus>(*std::move(status));
}

absl::StatusOr<bool> MayRestore(rpc::Client& client, const std::string& name) {
  H5M_ASSIGN_OR_RETURN(const v1::GetServerResponse info, client.GetServer(name));
  return std::find(info.rights().begin(), info.rights().end(), "restore") != info.rights().end();
}

v1::CommitVersionRequest NewCommit(const std::string& name, const std::string& comment) {
  v1::CommitVersionRequest commit;
  commit.set_name(name);
  commit.set_comment(comment);
  *commit.mutable_writer() = LocalWriter();
  commit.set_request_id(ToByteString(RandomBytes16()));
  return commit;
}

absl::Status CheckNoLease(const std::string& local, const v1::FileStatus& server) {
  if (!server.has_lease()) return absl::OkStatus();
  const v1::Writer& writer = server.lease().writer();
  return absl::FailedPreconditionError(
      StrCat(local, ": ", writer.program(), " (pid ", writer.pid(), " on ", writer.host(),
             ") holds the lease of ", server.name(),
             "; let its program close the file, end it, or wait until its lease has run out"));
}

bool IsLevel(const std::string& name, const LocalFile& file,
             const std::optional<LocalRecord>& record, const v1::FileStatus& server) {
  return record.has_value() && record->name == name && record->state == RecordState::kClean &&
         ToByteString(record->file_id) == server.file_id() && record->stat == file.stat() &&
         record->cut == server.last_cut();
}

bool IsLevelWherever(const LocalFile& file, const LocalRecord& record,
                     const v1::FileStatus& server) {
  return IsLevel(record.name, file, record, server) && IsSameStat(server.local(), record.stat);
}

absl::StatusOr<PushAction> DecidePush(const std::string& name, const LocalFile& file,
                                      const std::optional<LocalRecord>& record,
                                      const std::optional<v1::FileStatus>& server,
                                      ForeignFile foreign) {
  if (!server.has_value()) return PushAction::kUpload;
  // A record names the file that the user wants to have there, also where the two have diverged.
  const bool known = record.has_value() && record->name == name;
  if (!known && foreign == ForeignFile::kRefuse) {
    return absl::FailedPreconditionError(
        StrCat(file.path().string(), ": the server has a file ", name, " (version ",
               server->newest_version().version(), ", written from ", server->origin().host(), ":",
               server->origin().path(), ") that is not known to be this one; h5mirror adopt ",
               file.path().string(), " --name ", name,
               " if they are the same, h5mirror push --replace to put this one in its place"));
  }
  return IsLevel(name, file, record, *server) ? PushAction::kSkip : PushAction::kReplace;
}

absl::Status CheckContent(const LocalFile& file, const std::optional<LocalRecord>& record,
                          Content content) {
  if (content == Content::kAny) return absl::OkStatus();
  const std::string path = file.path().string();
  // Such a file may open and still be torn: it lacks the data from its writer's memory.
  if (record.has_value() && record->state == RecordState::kOpen) {
    return absl::FailedPreconditionError(
        StrCat(path, ": its writer ended without a close, so it may be torn: h5mirror recover ",
               path, " goes back to the last cut; --any pushes it as it is"));
  }
  switch (file.LookAtHdf5()) {
    case Hdf5State::kClosed:
      return absl::OkStatus();
    case Hdf5State::kNotHdf5:
      return absl::FailedPreconditionError(
          StrCat(path, ": not an HDF5 file; --any pushes it all the same"));
    case Hdf5State::kOpen:
      return absl::FailedPreconditionError(
          StrCat(path,
                 ": its superblock says that it is open for writing: close it, or after a crash of "
                 "its writer h5mirror recover ",
                 path, "; --any pushes it as it is"));
    case Hdf5State::kCutShort:
      return absl::FailedPreconditionError(StrCat(
          path,
          ": shorter than its superblock says, its writer did not close it: h5mirror recover ",
          path, "; --any pushes it as it is"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FilesToPush> FindFilesToPush(const std::vector<std::string>& locals, bool recursive,
                                            Content content) {
  FilesToPush found;
  for (const std::string& local : locals) {
    std::error_code error;
    const fs::file_status status = fs::status(local, error);
    if (!fs::exists(status)) {
      return absl::NotFoundError(StrCat(local, ": no such file or directory"));
    }
    if (!fs::is_directory(status)) {
      found.files.push_back(local);
    } else if (!recursive) {
      return absl::InvalidArgumentError(
          StrCat(local, " is a directory; push -r takes whole trees"));
    } else {
      const auto first = static_cast<std::ptrdiff_t>(found.files.size());
      H5M_RETURN_IF_ERROR(Walk(local, content, found));
      std::sort(found.files.begin() + first, found.files.end());
    }
  }
  std::sort(found.gone.begin(), found.gone.end());
  for (const std::string& file : found.files) {
    std::error_code error;
    const uintmax_t size_bytes = fs::file_size(file, error);
    if (!error) found.total_bytes += size_bytes;
  }
  return found;
}

void NoteFoundEqual(rpc::Client& client, const v1::FileStatus& before, int64_t version) {
  if (!before.has_last_check() || before.last_check().differing_bytes() == 0) return;
  v1::RecordCheckRequest check;
  check.set_name(before.name());
  check.set_version(version);
  static_cast<void>(client.RecordCheck(check));
}

}  // namespace h5mirror::tools
