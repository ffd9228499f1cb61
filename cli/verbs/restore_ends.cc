#include "cli/verbs/restore_ends.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/hex.h"
#include "base/remote_origin.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

// The first limit is for one call, and long enough for a loaded server. Data in flow may take as
// long as it needs.
constexpr char kTimeout[] = "15s";
constexpr char kLinger[] = "24h";

absl::StatusOr<fs::path> RealOf(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  if (!error) return real;
  return absl::NotFoundError(StrCat(path.string(), ": ", error.message()));
}

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The file's history lies beside it, and no server has it.
bool HasOwnHistory(const fs::path& path) {
  return Exists(RecordDirectory(path) / "index") && !Exists(RecordPath(path));
}

absl::StatusOr<RestoreTarget> LocalTarget(const fs::path& given) {
  RestoreTarget target;
  H5M_ASSIGN_OR_RETURN(target.local, RealOf(given));
  target.is_new = !Exists(target.local);
  if (HasOwnHistory(target.local)) {
    target.kind = RestoreTarget::Kind::kEmbedded;
  } else {
    H5M_ASSIGN_OR_RETURN(target.mirrors, ResolveMirrorsOf(target.local.string(), std::nullopt));
    const bool is_mirrored = target.mirrors.front().record.has_value();
    if (!is_mirrored) target.mirrors.clear();
    target.kind = is_mirrored ? RestoreTarget::Kind::kMirrored : RestoreTarget::Kind::kPlain;
  }
  if (!target.is_new || target.kind == RestoreTarget::Kind::kPlain) return target;
  return absl::NotFoundError(StrCat(target.local.string(),
                                    " is gone, and only the record of its mirror is left: "
                                    "h5mirror recover ",
                                    target.local.string(), " brings it back"));
}

RestoreTarget OnServer(const RestoreSource& source) {
  RestoreTarget target;
  target.kind = RestoreTarget::Kind::kRemote;
  target.mirrors.push_back(source.file);
  return target;
}

// The path comes from a writer, possibly another user, and another file may lie there by now.
bool IsMirroredAs(const RestoreTarget& target, const v1::FileStatus& status) {
  return std::any_of(target.mirrors.begin(), target.mirrors.end(), [&](const FileArg& mirror) {
    return mirror.record.has_value() && ToByteString(mirror.record->file_id) == status.file_id();
  });
}

// The user gave the name of a server's file, so a bare code of the local disk would mislead: "no
// right" and "unreachable" would be taken for the server's.
bool IsOfTheDisk(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnavailable(status) || absl::IsInternal(status) ||
         absl::IsResourceExhausted(status);
}

absl::Status HiddenOrigin(const RestoreSource& source, std::string_view why) {
  return absl::FailedPreconditionError(StrCat(
      source.file.name, " is the mirror of ", source.status.origin().path(),
      ", which you cannot look at (", why,
      "), and after a change on the server the two would differ: let a user with the right to "
      "write that file restore it, or give a file with --into"));
}

// Of a file that was named as the server has it.
absl::StatusOr<RestoreTarget> TargetOfName(const RestoreSource& source) {
  const v1::Origin& origin = source.status.origin();
  if (origin.path().empty() || IsRemoteOrigin(origin.path())) return OnServer(source);
  H5M_ASSIGN_OR_RETURN(const v1::Origin here, LocalOrigin("/"));
  if (origin.machine_id() != here.machine_id()) {
    return absl::FailedPreconditionError(StrCat(
        source.file.name, " is the mirror of ", origin.host(), ":", origin.path(),
        ", and after a change on the server the two would differ: restore it there, or give a file "
        "with --into"));
  }
  std::error_code unknown;
  const bool is_there = fs::exists(origin.path(), unknown);
  if (unknown) return HiddenOrigin(source, unknown.message());
  if (!is_there) return OnServer(source);
  absl::StatusOr<RestoreTarget> target = LocalTarget(origin.path());
  if (IsOfTheDisk(target.status())) return HiddenOrigin(source, ToStd(target.status().message()));
  H5M_RETURN_IF_ERROR(target.status());
  if (IsMirroredAs(*target, source.status)) return target;
  return absl::FailedPreconditionError(
      StrCat(source.file.name, " was written from ", origin.path(),
             ", but the file that is there now is not the one that the server mirrors: nothing was "
             "changed; --into LOCAL names the file to restore into"));
}

// A writer that died may have left bytes that the server lacks. The driver would find that the two
// have diverged, and the object would come back without a version.
absl::Status CheckLastWriter(const FileArg& mirror, const std::string& said) {
  const bool has_died = mirror.record.has_value() && mirror.record->state == RecordState::kOpen;
  if (!has_died) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("the last program that wrote ", said,
             " died: go back to its last cut first, with h5mirror recover ", said));
}

// Refuses now what the driver would refuse only after the object was copied. The driver takes in
// changes of programs without it, so these do not matter here.
absl::Status CheckLevel(const FileArg& mirror, const v1::FileStatus& status,
                        const std::string& said) {
  const LocalRecord& record = *mirror.record;
  const bool is_it = status.file_id() == ToByteString(record.file_id);
  const bool went_on = record.state == RecordState::kClean && status.last_cut() > record.cut;
  if (is_it && !went_on) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(
      said, " and ", status.name(), " on ", mirror.server,
      is_it ? " have diverged: the mirror was changed" : " have parted: that is another file",
      "; nothing was changed. h5mirror resync --dry-run ", said, " says how they differ"));
}

absl::Status CheckMirror(Context& context, const FileArg& mirror, const std::string& said) {
  if (mirror.record.has_value() && mirror.record->state == RecordState::kDiverged) {
    return absl::FailedPreconditionError(
        StrCat(said, " and its mirror on ", mirror.server,
               " have diverged: settle that first with h5mirror resync ", said));
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(mirror));
  H5M_ASSIGN_OR_RETURN(const v1::GetServerResponse info, client->GetServer(mirror.name));
  if (std::find(info.rights().begin(), info.rights().end(), "write") == info.rights().end()) {
    return absl::PermissionDeniedError(StrCat("to restore into ", mirror.name,
                                              " takes the right \"write\" to it; with --into "
                                              "LOCAL the right \"read\" is enough"));
  }
  H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> status,
                       FindServerFile(*client, mirror.name));
  if (!status.has_value()) {
    return absl::FailedPreconditionError(StrCat(mirror.name, " is not on ", mirror.server,
                                                " any more: h5mirror status ", said,
                                                " tells its state"));
  }
  H5M_RETURN_IF_ERROR(CheckNoLease(said, *status));
  H5M_RETURN_IF_ERROR(CheckLastWriter(mirror, said));
  return mirror.record.has_value() ? CheckLevel(mirror, *status, said) : absl::OkStatus();
}

// The driver takes one name for all of them.
absl::Status CheckNames(const RestoreTarget& target) {
  for (const FileArg& mirror : target.mirrors) {
    const FileArg& first = target.mirrors.front();
    if (mirror.name == first.name) continue;
    return absl::FailedPreconditionError(
        StrCat(target.said(), " is ", first.name, " on ", first.server, " and ", mirror.name,
               " on ", mirror.server, ": give both one name with h5mirror mv"));
  }
  return absl::OkStatus();
}

std::string Absolute(std::string_view prefix, const std::string& text) {
  if (!text.starts_with(prefix)) return text;
  std::error_code error;
  const fs::path path = fs::absolute(text.substr(prefix.size()), error).lexically_normal();
  return StrCat(prefix, path.string());
}

// The driver keys that all files share. They override client.toml, whose rules derive names from
// paths: here the name is known.
DriverKeys CommonKeys(const Context& context, const char* mode, const std::string& root) {
  DriverKeys keys{{"mode", mode},  {"under", "sec2"},     {"root", root},     {"include", ""},
                  {"exclude", ""}, {"timeout", kTimeout}, {"linger", kLinger}};
  const rpc::ClientSettings& client = context.flags().client;
  if (client.ca.has_value()) keys.emplace_back("ca", Absolute("", *client.ca));
  if (client.token.has_value()) keys.emplace_back("token", Absolute("@", *client.token));
  return keys;
}

}  // namespace

bool RestoreSource::is_embedded() const { return IsEmbeddedAddress(file.server); }

std::string RestoreSource::said() const { return StrCat(file.name, "@", version); }

std::string RestoreTarget::said() const {
  return kind == Kind::kRemote ? mirrors.front().name : local.string();
}

absl::StatusOr<RestoreSource> FindRestoreSource(Context& context,
                                                const std::string& file_at_version) {
  Context asking(context.flags(), context.streams());
  H5M_ASSIGN_OR_RETURN(const ConnectedVersion found, ConnectVersion(asking, file_at_version));
  RestoreSource source;
  source.file = found;
  source.version = found.version;
  source.server = found.client->options().server;
  v1::GetFileRequest file_request;
  file_request.set_name(found.name);
  H5M_ASSIGN_OR_RETURN(source.status, found.client->GetFile(file_request, absl::Seconds(30)));
  v1::GetVersionRequest version_request;
  version_request.set_name(found.name);
  version_request.set_version(found.version);
  H5M_RETURN_IF_ERROR(found.client->GetVersion(version_request).status());
  return source;
}

absl::StatusOr<RestoreTarget> FindRestoreTarget(const RestoreSource& source,
                                                const std::string& into) {
  if (!into.empty()) return LocalTarget(into);
  return source.file.local.empty() ? TargetOfName(source) : LocalTarget(source.file.local);
}

absl::Status CheckRestoreTarget(Context& context, const RestoreTarget& target, bool changes) {
  H5M_RETURN_IF_ERROR(CheckNames(target));
  // --server names where the version is. The target stays with its own.
  GlobalFlags flags = context.flags();
  if (target.kind == RestoreTarget::Kind::kMirrored && flags.client.server.has_value()) {
    flags.own_servers.push_back(Absolute("unix:", *flags.client.server));
    flags.client.server.reset();
  }
  Context asking(flags, context.streams());
  for (const FileArg& mirror : target.mirrors) {
    const absl::Status checked = CheckMirror(asking, mirror, target.said());
    const bool is_away = absl::IsUnavailable(checked) || absl::IsDeadlineExceeded(checked);
    if (!checked.ok() && !(is_away && target.mirrors.size() > 1)) return checked;
    if (!checked.ok()) context.Note(ToStd(checked.message()));
  }
  if (!changes || target.local.empty() || target.is_new) return absl::OkStatus();
  return LocalFile::Open(target.local, FileLock::kExclusive).status();
}

DriverKeys KeysOfSource(const Context& context, const RestoreSource& source) {
  DriverKeys keys = CommonKeys(context, "reader", "/");
  keys.emplace_back("server", source.is_embedded() ? kEmbedded : Absolute("unix:", source.server));
  if (!source.is_embedded()) keys.emplace_back("name", source.file.name);
  keys.emplace_back("version", std::to_string(source.version));
  keys.emplace_back("agent", "off");
  return keys;
}

DriverKeys KeysOfTarget(const Context& context, const RestoreSource& source,
                        const RestoreTarget& target, const std::string& comment) {
  using Kind = RestoreTarget::Kind;
  const Kind kind = target.kind;
  const char* const mode = kind == Kind::kPlain    ? "off"
                           : kind == Kind::kRemote ? "remote"
                                                   : "mirror";
  DriverKeys keys = CommonKeys(context, mode, "/");
  // So no metadata that leads to the copy is in the file before the last flush.
  keys.emplace_back("metadata", "memory");
  if (kind == Kind::kPlain) return keys;
  keys.emplace_back("comment", comment);
  keys.emplace_back("ack_commit", "durable");
  keys.emplace_back("version_min_interval", "0s");
  if (kind == Kind::kEmbedded) {
    keys.emplace_back("server", kEmbedded);
    return keys;
  }
  keys.emplace_back("name", target.mirrors.front().name);
  std::vector<std::string> servers;
  for (const FileArg& mirror : target.mirrors) {
    servers.push_back(Absolute("unix:", kind == Kind::kRemote ? source.server : mirror.server));
  }
  keys.emplace_back("server", absl::StrJoin(servers, ","));
  return keys;
}

std::string TomlOf(const DriverKeys& keys) {
  std::string text;
  for (const auto& [key, value] : keys) {
    StrAppend(&text, key, " = \"");
    for (const char each : value) {
      const bool is_plain = static_cast<unsigned char>(each) >= 0x20 && each != 0x7f;
      if (each == '"' || each == '\\') {
        StrAppend(&text, "\\", std::string(1, each));
      } else if (is_plain) {
        text.push_back(each);
      } else {
        text += absl::StrFormat("\\u%04x", static_cast<unsigned char>(each));
      }
    }
    StrAppend(&text, "\"\n");
  }
  return text;
}

}  // namespace h5mirror::tools
