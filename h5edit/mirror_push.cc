#include "h5edit/mirror_push.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/hex.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/progress.h"
#include "client_vfd/plugin/config/config.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"
#include "sync/push_session.h"
#include "sync/resync.h"
#include "sync/upload.h"

namespace h5mirror::edit {
namespace {

constexpr double kConnectSeconds = 5;
// A program that has just closed the file gives its lease back soon.
constexpr absl::Duration kLeasePatience = absl::Seconds(5);
constexpr absl::Duration kLeasePoll = absl::Milliseconds(50);
constexpr size_t kCommentBytesMax = 1000;
constexpr std::string_view kMore = " ...";
constexpr char kMissed[] = "edits that the server had missed";
constexpr char kFound[] = "as h5edit found it";
// Before the file's name.
constexpr char kBrings[] =
    "; the next edit, or the next program that writes it through the driver, brings it; or "
    "h5mirror resync ";
constexpr char kDecides[] =
    "; nor is it known what it lacks, as the file was changed by others before: when the server is "
    "back, say what is right with h5mirror resync --from local, or --from remote, ";

// The driver's configuration, as the driver itself reads it.
absl::StatusOr<vfd::Config> DriverConfig(const std::string& text) {
  vfd::Config config;
  const char* const home = getenv("HOME");
  const vfd::Problem problem = vfd::MakeConfig(text, home != nullptr ? home : "", &config);
  if (problem) return absl::InvalidArgumentError(StrCat("h5mirror configuration: ", *problem));
  return config;
}

// A command may have thousands of values. Cut off between two characters.
std::string Bounded(const std::string& comment) {
  if (comment.size() <= kCommentBytesMax) return comment;
  size_t end = kCommentBytesMax - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(comment[end]) & 0xc0) == 0x80) --end;
  return StrCat(comment.substr(0, end), kMore);
}

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<std::optional<v1::FileStatus>> FindUnleased(rpc::Client& client,
                                                           const std::string& local,
                                                           const std::string& name) {
  const absl::Time deadline = absl::Now() + kLeasePatience;
  while (true) {
    H5M_ASSIGN_OR_RETURN(const auto server, tools::FindServerFile(client, name));
    if (!server) return server;
    const absl::Status free = tools::CheckNoLease(local, *server);
    if (free.ok()) return server;
    if (absl::Now() >= deadline) return free;
    absl::SleepFor(kLeasePoll);
  }
}

// Another file of this machine, or one of another machine, has adopted the mirror. A file that was
// renamed has not.
absl::Status CheckIsOrigin(const tools::LocalFile& file, const v1::FileStatus& server) {
  H5M_ASSIGN_OR_RETURN(const v1::Origin here, tools::LocalOrigin(file.path()));
  const v1::Origin& origin = server.origin();
  if (origin.path().empty()) return absl::OkStatus();
  if (origin.machine_id() == here.machine_id()) {
    std::error_code error;
    const bool is_this = std::filesystem::equivalent(origin.path(), file.path(), error);
    if (is_this || error) return absl::OkStatus();
  }
  const std::string local = file.path().string();
  return absl::FailedPreconditionError(
      StrCat(server.name(), " on the server is written from ", origin.host(), ":", origin.path(),
             " now, which has adopted it: h5mirror adopt ", local,
             " takes it back where the two are equal, h5mirror resync --from local ", local,
             " makes the server's like this one"));
}

// A file's only record is used for any named server, because that may be another name of the
// record's server. If the server has no such file, it is a new mirror: it gets a record of its own,
// and the other mirror's record stays.
void BecomeNewMirror(const std::string& address, const std::optional<v1::FileStatus>& server,
                     tools::FileArg* arg) {
  if (!arg->record || IsSameServer(arg->record->server, address)) return;
  if (server && server->file_id() == ToByteString(arg->record->file_id)) return;
  arg->record.reset();
  arg->server = address;
  arg->tag = ServerTag(address);
}

// A user removed the file there, so it is made again only on request. Or the server serves the
// wrong root.
absl::Status CheckNotRemoved(const tools::LocalFile& file, const LocalRecord& record,
                             const tools::FileArg& arg) {
  if (record.cut == 0) return absl::OkStatus();  // It never arrived.
  const std::string local = file.path().string();
  return absl::FailedPreconditionError(StrCat(
      arg.name, " is on the server ", arg.server, " no more: h5mirror undelete ", arg.name,
      " brings it back where it was removed, h5mirror push ", local, " makes it anew, and without ",
      RecordPath(arg.place()).string(), " the file is mirrored there no more"));
}

// Then it is compared, and only what differs is sent.
bool HasAll(const DirtyMap& map, uint64_t size_bytes) {
  const std::vector<Extent> extents = map.extents.Intersection({0, size_bytes});
  return extents.size() == 1 && extents[0].length == size_bytes;
}

// Whether the record of a file that was closed tells all that the server lacks.
bool KnowsLag(const tools::FileArg& arg) {
  const auto record = ReadLocalRecord(arg.place());
  const auto now = StatFile(arg.local);
  if (!record.ok() || !now.ok()) return false;
  return (record->state == RecordState::kClean && record->stat == *now) ||
         FindDirtyMap(arg.place(), *record, *now).has_value();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MirrorPush>> MirrorPush::Open(const std::string& path,
                                                             const std::string& server,
                                                             const std::string& config) {
  std::unique_ptr<MirrorPush> push(new MirrorPush);
  H5M_RETURN_IF_ERROR(push->Configure(server, config));
  H5M_RETURN_IF_ERROR(push->Find(path, server));
  for (OneMirror& mirror : push->mirrors_) {
    const absl::Status level = push->BringLevel(mirror);
    if (!level.ok() && (push->is_required_ || !IsAway(level))) return level;
    mirror.was_there = level.ok();
    if (!level.ok()) mirror.away = ToStd(level.message());
  }
  return push;
}

absl::Status MirrorPush::Configure(const std::string& server, const std::string& text) {
  H5M_ASSIGN_OR_RETURN(const vfd::Config config, DriverConfig(text));
  is_named_ = !server.empty();
  is_required_ = is_named_ || config.on_outage == vfd::OnOutage::kFail;
  flags_.timeout_seconds = kConnectSeconds;
  if (!config.server.empty()) listed_ = config.Servers();
  flags_.own_servers = listed_;
  root_ = config.root;
  new_name_ = config.name;
  if (!server.empty()) flags_.client.server = server;
  if (!config.ca.empty()) flags_.client.ca = config.ca;
  if (!config.token.empty()) flags_.client.token = config.token;
  return absl::OkStatus();
}

absl::Status MirrorPush::Find(const std::string& path, const std::string& server) {
  const tools::WantedServer wanted = server.empty() ? std::nullopt : tools::WantedServer(server);
  H5M_ASSIGN_OR_RETURN(std::vector<tools::FileArg> args, tools::ResolveMirrorsOf(path, wanted));
  const auto is_listed = [this](const tools::FileArg& arg) {
    return std::any_of(listed_.begin(), listed_.end(),
                       [&](const std::string& each) { return IsSameServer(each, arg.server); });
  };
  // A mirror that is no longer in the configuration is not written by the driver either.
  const bool leaves_out = server.empty() && std::any_of(args.begin(), args.end(), is_listed);
  for (tools::FileArg& arg : args) {
    if (!leaves_out || is_listed(arg)) mirrors_.push_back({std::move(arg), ""});
  }
  return absl::OkStatus();
}

absl::Status MirrorPush::BringLevel(OneMirror& mirror) {
  const std::string local = mirror.arg.local.string();
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context_.Connect(mirror.arg));
  const std::string given = mirror.arg.record ? "" : new_name_;
  H5M_ASSIGN_OR_RETURN(mirror.arg.name, tools::MirrorName(context_, given, root_, mirror.arg));
  H5M_ASSIGN_OR_RETURN(const auto server, FindUnleased(*client, local, mirror.arg.name));
  BecomeNewMirror(client->options().server, server, &mirror.arg);
  std::optional<tools::LocalFile> file;
  H5M_ASSIGN_OR_RETURN(file, tools::LocalFile::Open(local, tools::FileLock::kShared));
  const std::optional<LocalRecord>& record = mirror.arg.record;
  H5M_RETURN_IF_ERROR(tools::CheckNotRenamed(*client, mirror.arg.name, *file, record, server));
  if (!server && record && !is_named_)
    H5M_RETURN_IF_ERROR(CheckNotRemoved(*file, *record, mirror.arg));
  if (!server) {
    tools::PushRequest request;
    request.name = mirror.arg.name;
    request.server = client->options().server;
    request.tag = mirror.arg.tag;
    request.comment = kFound;
    tools::Progress progress(streams_, local, file->size_bytes());
    return tools::Upload(*client, *file, request, progress).status();
  }
  if (record) H5M_RETURN_IF_ERROR(CheckIsOrigin(*file, *server));
  if (tools::IsLevel(mirror.arg.name, *file, record, *server)) return absl::OkStatus();
  if (record) {
    const std::optional<DirtyMap> map = FindDirtyMap(mirror.arg.place(), *record, file->stat());
    const bool knows = map && !HasAll(*map, file->size_bytes());
    if (knows && ToByteString(map->file_id) == server->file_id()) {
      const absl::Status sent = SendMap(mirror, kMissed);
      const bool fits = !absl::IsAborted(sent) && !absl::IsFailedPrecondition(sent);
      if (fits) return sent;
    }
  }
  file.reset();  // Resync() locks it itself.
  tools::ResyncRequest request;
  request.verb = "h5edit";
  request.local = local;
  request.mirror = mirror.arg;
  request.name = mirror.arg.name;
  request.comment = kMissed;
  return tools::Resync(context_, request).status();
}

// The record and the map are as the editor, or an earlier attempt, left them.
absl::Status MirrorPush::SendMap(const OneMirror& mirror, const std::string& comment) {
  const RecordPlace place = mirror.arg.place();
  H5M_ASSIGN_OR_RETURN(const LocalRecord record, ReadLocalRecord(place));
  H5M_ASSIGN_OR_RETURN(const tools::LocalFile file,
                       tools::LocalFile::Open(mirror.arg.local, tools::FileLock::kNone));
  if (record.state == RecordState::kClean && record.stat == file.stat()) return absl::OkStatus();
  const std::optional<DirtyMap> map = FindDirtyMap(place, record, file.stat());
  if (!map || map->base_cut == 0 || map->barrier_seq != 0) {
    return absl::FailedPreconditionError(
        StrCat("it is not known what it lacks: h5mirror resync --from local ",
               mirror.arg.local.string(), " compares the two, and sends what differs"));
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context_.Connect(mirror.arg));
  tools::PushRequest request;
  request.verb = "h5edit";
  request.program = "h5edit";
  request.name = mirror.arg.name;
  request.server = client->options().server;
  request.tag = mirror.arg.tag;
  request.file_id = record.file_id;
  // A commit whose answer was lost is known to the server by its session.
  const bool resumes = map->claim == DirtyMap::Claim::kResume;
  request.intent = resumes ? v1::INTENT_RESUME : v1::INTENT_RESYNC;
  request.base_cut = map->base_cut;
  request.base_cut_newest = map->cut_newest;
  request.predecessor = map->session_id;
  request.comment = Bounded(comment);
  tools::PushSession session(*client, file, request);
  H5M_RETURN_IF_ERROR(session.Open());
  if (map->truncate) H5M_RETURN_IF_ERROR(session.Truncate(*map->truncate));
  for (const Extent& extent : map->extents.ToVector()) H5M_RETURN_IF_ERROR(session.Send(extent));
  return session.Commit().status();
}

absl::Status MirrorPush::Commit(const std::string& comment, Moment moment) {
  for (OneMirror& mirror : mirrors_) {
    // A server that is away is not waited for at each statement.
    const bool may_be_back = mirror.was_there && moment == Moment::kLast;
    if (!mirror.away.empty() && !may_be_back) {
      mirror.has_missed = true;
      continue;
    }
    const absl::Status sent =
        SendMap(mirror, mirror.has_missed ? StrCat(Bounded(comment), " and ", kMissed) : comment);
    mirror.away = sent.ok() ? "" : ToStd(sent.message());
    mirror.has_missed = !sent.ok();
  }
  const std::string lag = Lag();
  return lag.empty() ? absl::OkStatus() : absl::UnavailableError(lag);
}

std::string MirrorPush::Lag() const {
  std::string lag;
  for (const OneMirror& mirror : mirrors_) {
    if (mirror.away.empty()) continue;
    const std::string& given =
        mirror.arg.server.empty() ? flags_.client.server.value_or("") : mirror.arg.server;
    if (!lag.empty()) lag += "; ";
    StrAppend(&lag, "the server ", given, " does not have it yet: ", mirror.away,
              KnowsLag(mirror.arg) ? kBrings : kDecides, mirror.arg.local.string());
  }
  return lag;
}

}  // namespace h5mirror::edit
