// h5mirror recover: the local file becomes the server's newest version.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/errno_status.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/context/file_at_version.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/verbs/recover_members.h"
#include "cli/verbs/verbs.h"
#include "sync/closed_copy.h"
#include "sync/closed_record.h"
#include "sync/compare.h"
#include "sync/download.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"
#include "sync/resync.h"
#include "sync/temp_file.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kCommitTime = absl::Minutes(6);

struct Options {
  std::string local;
  std::string name;
  std::string version = "latest";
  bool dry_run = false;
  // Of a member of several files: its mirror, instead of what a record says.
  std::optional<FileArg> mirror = std::nullopt;
};

// The plan of one recovery, made before anything changes. --dry-run prints it; otherwise it is
// carried out.
struct Plan {
  rpc::Client* client = nullptr;
  FileArg arg;
  v1::FileStatus status;       // the server's, before
  bool has_newer_cut = false;  // the server, than its newest version
  // Version 0: one that --dry-run does not make, of the newer cut.
  v1::Version version;
  v1::Origin here;
  // Where the local file will differ from the version: a writer had the file open at its cut.
  std::optional<SuperblockPatch> patch;
  std::optional<LocalFile> old_file;  // locked; unset: there is none
  bool equal = false;                 // the old file has the bytes that it is to have
  std::string kept;                   // the old file's new name

  bool is_newest() const {
    return version.version() == status.newest_version().version() && !has_newer_cut;
  }
  // The local file is the one that the server's is a mirror of.
  bool is_here() const { return IsSameOrigin(here, status.origin()); }
};

// Of several mirrors, the one with the newest version by the clock of the file's writer. Mirrors
// that are away are ignored.
absl::StatusOr<FileArg> NewestMirror(Context& context, const std::string& local) {
  H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors,
                       ResolveMirrorsOf(local, context.flags().client.server));
  if (mirrors.size() == 1) return mirrors[0];
  const FileArg* newest = nullptr;
  absl::Time newest_time;
  for (const FileArg& mirror : mirrors) {
    const absl::StatusOr<rpc::Client*> client = context.Connect(mirror);
    const auto file = client.ok() ? FindServerFile(**client, mirror.name) : client.status();
    if (!file.ok()) context.Note(StrCat(mirror.server, ": ", file.status().message()));
    if (!file.ok() || !file->has_value()) continue;
    const absl::Time time = FromProto((*file)->newest_version().client_time());
    if (newest != nullptr && time <= newest_time) continue;
    newest = &mirror;
    newest_time = time;
  }
  if (newest != nullptr) {
    context.Note(StrCat("of its mirrors, ", newest->server, " has the newest version"));
    return *newest;
  }
  return absl::UnavailableError(
      StrCat(local, ": none of its ", mirrors.size(), " mirrors has it, or can be asked"));
}

absl::StatusOr<FileArg> MirrorOf(Context& context, const Options& options) {
  if (options.mirror) return *options.mirror;
  H5M_ASSIGN_OR_RETURN(FileArg mirror, NewestMirror(context, options.local));
  if (!options.name.empty()) mirror.name = options.name;
  return mirror;
}

absl::StatusOr<v1::FileStatus> StatusOf(const Plan& plan) {
  v1::GetFileRequest request;
  request.set_name(plan.arg.name);
  return plan.client->GetFile(request, absl::Seconds(30));
}

bool HasNewerCut(const v1::FileStatus& status) {
  return status.last_cut() != 0 && status.last_cut() != status.newest_version().cut();
}

std::string NewerCutText(const Plan& plan) {
  const int64_t newest = plan.status.newest_version().version();
  return newest == 0 ? StrCat("the server has a cut of ", plan.arg.name, " and no version of it")
                     : StrCat("the server has a cut of ", plan.arg.name,
                              " that is newer than its newest version, ", newest);
}

// Makes a version of flushed bytes that are in none yet, as after a kill of the server. Otherwise
// the recovery would go back past them.
absl::Status KeepNewerCut(Context& context, Plan& plan) {
  v1::CommitVersionRequest commit =
      NewCommit(plan.arg.name, "the newest cut, kept by h5mirror recover");
  commit.mutable_wait();  // Nobody writes it.
  const absl::StatusOr<v1::CommitVersionResponse> kept =
      plan.client->CommitVersion(commit, kCommitTime);
  if (!kept.ok()) {
    const int64_t newest = plan.status.newest_version().version();
    const std::string way =
        newest == 0 ? ""
                    : StrCat(". To go back to version ", newest,
                             " all the same: h5mirror recover --version ", newest, " LOCAL");
    return absl::Status(kept.status().code(),
                        StrCat(NewerCutText(plan), ", and it could not be made a version: ",
                               kept.status().message(), "; nothing was changed", way));
  }
  if (!kept->unchanged()) {
    context.Note(StrCat(NewerCutText(plan), "; it is version ", kept->version().version(), " now"));
  }
  H5M_ASSIGN_OR_RETURN(plan.status, StatusOf(plan));
  plan.has_newer_cut = HasNewerCut(plan.status) && !kept->unchanged();
  return absl::OkStatus();
}

// Of the version's bytes, which are read from the server.
absl::StatusOr<std::string> ReadVersionBytes(const Plan& plan, Extent range, Progress& progress) {
  return DownloadBytes(*plan.client, plan.arg.name, plan.version.version(), range, progress);
}

// Whether the old file has the bytes of the version, with the patch on them, in `range`.
absl::StatusOr<bool> IsPatched(const Plan& plan, Extent range, Progress& progress) {
  H5M_ASSIGN_OR_RETURN(std::string wanted, ReadVersionBytes(plan, range, progress));
  plan.patch->Apply(range.offset, &wanted);
  std::string bytes(range.length, '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, PreadUpTo(plan.old_file->fd(), range.offset, bytes.data(),
                                                   bytes.size(), plan.old_file->path().string()));
  return got == bytes.size() && bytes == wanted;
}

// By digests: the differences are not fetched for it.
absl::StatusOr<bool> HasTheBytes(const Plan& plan, Progress& progress) {
  const LocalFile& file = *plan.old_file;
  const auto size_bytes = static_cast<uint64_t>(plan.version.size_bytes());
  if (file.size_bytes() != size_bytes) return false;
  LocalBlocks blocks(file.fd(), file.size_bytes(), file.path().string());
  Comparison comparison(*plan.client, plan.arg.name, plan.version.version(), blocks, progress);
  H5M_RETURN_IF_ERROR(comparison.Coarse());
  if (!plan.patch) return comparison.equal();
  if (comparison.equal()) return false;
  std::vector<Extent> differing;
  H5M_RETURN_IF_ERROR(comparison.Fine([&](absl::Span<const Extent> more) {
    if (differing.size() < 2) differing.insert(differing.end(), more.begin(), more.end());
    return absl::OkStatus();
  }));
  // The patch lies within one sector.
  if (differing.size() != 1 || comparison.differing_bytes() > 4096) return false;
  const uint64_t offset = differing[0].offset;
  return IsPatched(plan, {offset, std::min(differing[0].end(), size_bytes) - offset}, progress);
}

absl::Status FindOldFile(Plan& plan) {
  absl::StatusOr<LocalFile> old_file = LocalFile::Open(plan.arg.local, FileLock::kExclusive);
  if (absl::IsNotFound(old_file.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(old_file.status());
  H5M_RETURN_IF_ERROR(CheckNoEdit(*old_file));
  plan.old_file = *std::move(old_file);
  plan.kept = NameForOldFile(plan.arg.local.string());
  return absl::OkStatus();
}

// A recovery that takes over another machine's file tells the server so, which takes a right. The
// right is checked before the local file is replaced.
absl::Status CheckRight(const Plan& plan) {
  if (!plan.is_newest() || plan.is_here()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const bool may_restore, MayRestore(*plan.client, plan.arg.name));
  if (may_restore) return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat(plan.arg.name, " is written from ", plan.status.origin().host(), ":",
             plan.status.origin().path(),
             ", and recover would have it written from here from now on, which needs the right "
             "\"restore\"; h5mirror export ",
             plan.arg.name, "@", plan.version.version(), " OUT makes a copy"));
}

absl::StatusOr<Plan> MakePlan(Context& context, const Options& options) {
  Plan plan;
  H5M_ASSIGN_OR_RETURN(plan.arg, MirrorOf(context, options));
  if (plan.arg.name.empty()) {
    return absl::NotFoundError(StrCat(
        options.local, ": no record of a mirror beside it; say which file it is with --name NAME"));
  }
  H5M_ASSIGN_OR_RETURN(const VersionSpec spec,
                       ParseVersionSpec(options.version, context.streams().zone));
  H5M_RETURN_IF_ERROR(FindOldFile(plan));
  H5M_ASSIGN_OR_RETURN(plan.here, LocalOrigin(plan.arg.local));
  H5M_ASSIGN_OR_RETURN(plan.client, context.Connect(plan.arg));
  H5M_ASSIGN_OR_RETURN(plan.status, StatusOf(plan));
  H5M_RETURN_IF_ERROR(CheckNoLease(options.local, plan.status));
  plan.has_newer_cut = HasNewerCut(plan.status);
  if (plan.has_newer_cut && options.version == "latest") {
    if (options.dry_run) return plan;
    H5M_RETURN_IF_ERROR(KeepNewerCut(context, plan));
  }
  v1::GetVersionRequest wanted;
  wanted.set_name(plan.arg.name);
  H5M_ASSIGN_OR_RETURN(const int64_t number,
                       ResolveVersion(context, *plan.client, plan.arg.name, spec));
  wanted.set_version(number);
  H5M_ASSIGN_OR_RETURN(plan.version, plan.client->GetVersion(wanted));
  H5M_RETURN_IF_ERROR(CheckRight(plan));
  const auto size_bytes = static_cast<uint64_t>(plan.version.size_bytes());
  Progress progress(context.streams(), StrCat("comparing ", options.local), size_bytes);
  H5M_ASSIGN_OR_RETURN(plan.patch,
                       FindSuperblockPatch(size_bytes, [&](uint64_t offset, size_t length) {
                         return ReadVersionBytes(plan, {offset, length}, progress);
                       }));
  if (plan.old_file) {
    H5M_ASSIGN_OR_RETURN(plan.equal, HasTheBytes(plan, progress));
    H5M_RETURN_IF_ERROR(plan.old_file->CheckUnchanged());
  }
  return plan;
}

// The old file keeps a name at every moment: a second name first, then the rename over the
// first. Where there are no hard links, it is renamed away.
absl::Status KeepOldFile(const Plan& plan) {
  const std::string local = plan.arg.local.string();
  if (link(local.c_str(), plan.kept.c_str()) == 0) return absl::OkStatus();
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) {
    return ErrnoToStatus(errno, StrCat("keep ", local, " as ", plan.kept));
  }
  if (renameat2(AT_FDCWD, local.c_str(), AT_FDCWD, plan.kept.c_str(), RENAME_NOREPLACE) != 0) {
    return ErrnoToStatus(errno, StrCat("keep ", local, " as ", plan.kept));
  }
  return absl::OkStatus();
}

struct Outcome {
  FileStat stat;  // the local file's now
  // Holds the lock on a new file until the record says what it is.
  std::optional<TempFile> fresh;
};

std::optional<RecordGroup> GroupOf(const v1::Version& version) {
  const absl::StatusOr<Bytes16> id = FromByteString(version.group().group_id());
  if (!version.has_group() || !id.ok()) return std::nullopt;
  return RecordGroup{*id,
                     version.group().number(),
                     {version.group().member().begin(), version.group().member().end()}};
}

absl::Status WriteRecord(const Plan& plan, const Outcome& outcome) {
  const v1::Version& version = plan.version;
  LocalRecord record;
  record.state = RecordState::kClean;
  H5M_ASSIGN_OR_RETURN(record.file_id, FromByteString(plan.status.file_id()));
  record.server = plan.client->options().server;
  record.name = plan.arg.name;
  record.cut = version.cut();
  record.version = version.version();
  record.stat = outcome.stat;
  record.group = GroupOf(version);
  record.since = absl::Now();
  if (!plan.is_newest()) {
    record.state = RecordState::kDiverged;
    record.detail =
        StrCat("recovered to version ", version.version(), ", which is not the server's newest");
  }
  if (plan.is_newest() && plan.patch) {
    return WriteClosedRecord(plan.arg.place(), std::move(record), *plan.patch);
  }
  H5M_RETURN_IF_ERROR(WriteLocalRecord(plan.arg.place(), record));
  RemoveDirtyMap(plan.arg.place());
  return absl::OkStatus();
}

// A file from another origin is written from here from now on. For a file of this origin, the
// server learns that it lacks nothing any more. Otherwise it would still report a missing writer.
absl::Status TellServer(const Plan& plan, const Outcome& outcome) {
  if (!plan.is_newest()) return absl::OkStatus();
  if (!plan.is_here()) {
    v1::AdoptFileRequest request;
    request.set_name(plan.arg.name);
    request.set_version(plan.version.version());
    *request.mutable_origin() = plan.here;
    *request.mutable_local() = ToProto(outcome.stat);
    H5M_RETURN_IF_ERROR(plan.client->AdoptFile(request).status());
  }
  if (plan.patch) return absl::OkStatus();  // It lacks that.
  v1::RecordCheckRequest check;
  check.set_name(plan.arg.name);
  check.set_version(plan.version.version());
  // The file is right without it, and a user with only the right to read can recover.
  static_cast<void>(plan.client->RecordCheck(check));
  return absl::OkStatus();
}

absl::StatusOr<Outcome> Recover(Context& context, const Plan& plan) {
  Outcome outcome;
  if (plan.equal) {
    outcome.stat = plan.old_file->stat();
    return outcome;
  }
  H5M_ASSIGN_OR_RETURN(TempFile fresh, TempFile::Create(plan.arg.local));
  absl::Status status;
  {
    Progress progress(context.streams(), plan.arg.local.string(),
                      static_cast<uint64_t>(plan.version.size_bytes()));
    status = DownloadToFile(*plan.client, plan.arg.name, plan.version.version(), progress,
                            fresh.fd(), fresh.path())
                 .status();
  }
  H5M_RETURN_IF_ERROR(status);
  if (plan.patch) {
    H5M_RETURN_IF_ERROR(PwriteAll(fresh.fd(), plan.patch->offset, plan.patch->bytes, fresh.path()));
  }
  if (plan.old_file.has_value()) {
    H5M_RETURN_IF_ERROR(plan.old_file->CheckUnchanged());
    fresh.CopyOwnerAndMode(plan.old_file->fd());
    H5M_RETURN_IF_ERROR(KeepOldFile(plan));
  }
  H5M_ASSIGN_OR_RETURN(
      outcome.stat,
      fresh.CommitLocked(plan.old_file.has_value() ? Existing::kReplace : Existing::kRefuse));
  outcome.fresh.emplace(std::move(fresh));
  return outcome;
}

// The result for a cut that is in no version yet.
void ReportNewerCut(Context& context, const Plan& plan, const Options& options) {
  const bool keeps = plan.old_file.has_value();
  const Json kept = keeps ? Json(plan.kept) : Json(nullptr);
  if (context.json()) {
    context.Print(Json{{"local", options.local},
                       {"file", plan.arg.name},
                       {"action", "would_recover"},
                       {"version", nullptr},
                       {"broken", kept},
                       {"kept", kept},
                       {"dry_run", true}});
    return;
  }
  context.Say(StrCat(
      NewerCutText(plan), ": would make that a version, and ", options.local, " the same",
      keeps ? StrCat("; the old one would be kept as ", options.local, kOldFileMark, "TIME") : ""));
}

std::string NameAndVersion(const Plan& plan) {
  return StrCat(plan.arg.name, "@", plan.version.version());
}

// Whether the old file is kept beside the new one.
bool KeepsOldFile(const Plan& plan) { return plan.old_file.has_value() && !plan.equal; }

void PrintReport(Context& context, const Plan& plan, const Options& options) {
  const Json kept = KeepsOldFile(plan) ? Json(plan.kept) : Json(nullptr);
  const char* const done = options.dry_run ? "would_recover" : "recovered";
  context.Print(Json{{"local", options.local},
                     {"file", plan.arg.name},
                     {"action", plan.equal ? "equal" : done},
                     {"version", VersionToJson(plan.version)},
                     {"broken", kept},
                     {"kept", kept},
                     {"dry_run", options.dry_run}});
}

std::string ReportText(const Plan& plan, const Options& options) {
  const std::string what = NameAndVersion(plan);
  if (plan.equal) {
    return StrCat(options.local, " is ", what, " already; its record ",
                  options.dry_run ? "would say so" : "says so now");
  }
  const std::string size = HumanBytes(static_cast<uint64_t>(plan.version.size_bytes()));
  const bool keeps = KeepsOldFile(plan);
  if (options.dry_run) {
    return StrCat(
        "would recover ", options.local, " to ", what, " (", size, ")",
        keeps ? StrCat("; the old one would be kept as ", options.local, kOldFileMark, "TIME")
              : "");
  }
  return StrCat("recovered ", options.local, " to ", what, " (", size, ")",
                keeps ? StrCat("; the old one is kept as ", plan.kept) : "");
}

// How a version that is not the newest becomes what is written on.
std::string WayOnText(const Plan& plan, const Options& options) {
  const std::string newest = plan.has_newer_cut ? NewerCutText(plan)
                                                : StrCat("the server's newest is version ",
                                                         plan.status.newest_version().version());
  return StrCat(newest, "; to go on from version ", plan.version.version(), ": h5mirror rollback ",
                NameAndVersion(plan), " && h5mirror ", plan.patch ? "resync --from local" : "adopt",
                " ", options.local);
}

// The same of a run as of a dry run.
void Report(Context& context, const Plan& plan, const Options& options) {
  if (context.json()) PrintReport(context, plan, options);
  context.Say(ReportText(plan, options));
  if (plan.patch) {
    context.Note(StrCat(NameAndVersion(plan),
                        " was cut while a writer had the file open: the local file ",
                        options.dry_run ? "gets" : "has", " the superblock of a closed file"));
  }
  if (!plan.is_newest() && !options.mirror) context.Note(WayOnText(plan, options));
}

void CloseOnServer(Context& context, const Plan& plan, const Options& options) {
  ResyncRequest request;
  request.verb = "recover";
  request.local = options.local;
  request.name = plan.arg.name;
  request.mirror = plan.arg;
  request.comment =
      StrCat("recover: version ", plan.version.version(), " with a closed superblock");
  SendClosedSuperblock(context, std::move(request));
}

absl::StatusOr<int> RecoverFile(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(Plan plan, MakePlan(context, options));
  if (options.dry_run && plan.version.version() == 0) {
    ReportNewerCut(context, plan, options);
    return kExitOk;
  }
  if (options.dry_run) {
    Report(context, plan, options);
    return kExitOk;
  }
  {
    H5M_ASSIGN_OR_RETURN(const Outcome outcome, Recover(context, plan));
    H5M_RETURN_IF_ERROR(TellServer(plan, outcome));
    H5M_RETURN_IF_ERROR(WriteRecord(plan, outcome));
  }
  Report(context, plan, options);
  if (plan.is_newest() && plan.patch) {
    plan.old_file.reset();  // It takes the file's lock itself.
    CloseOnServer(context, plan, options);
  }
  return kExitOk;
}

// All members of a family, split or multi file go to one moment together, whichever is named.
absl::StatusOr<int> RunRecover(Context& context, const Options& options) {
  if (options.version != "latest") return RecoverFile(context, options);
  H5M_ASSIGN_OR_RETURN(FileArg mirror, MirrorOf(context, options));
  Options own = options;
  own.mirror = mirror;
  if (mirror.name.empty()) return RecoverFile(context, own);
  H5M_ASSIGN_OR_RETURN(rpc::Client* const client, context.Connect(mirror));
  H5M_ASSIGN_OR_RETURN(const auto cut, FindMembers(*client, mirror.name));
  if (!cut) return RecoverFile(context, own);
  const MembersToRecover members{*client, mirror, *cut, options.dry_run};
  H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors, GoBackToCut(context, members));
  for (size_t index = 0; index < mirrors.size(); ++index) {
    own.mirror = mirrors[index];
    own.local = mirrors[index].local.string();
    if (options.dry_run) own.version = StrCat(cut->members[index].version.version());
    H5M_RETURN_IF_ERROR(RecoverFile(context, own).status());
  }
  return kExitOk;
}

}  // namespace

void AddRecover(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "recover", "Make a local file the server's newest version; the old one is kept beside it");
  verb->add_option("LOCAL", options->local, "the local file, which may be broken or gone")
      ->required();
  verb->add_option("--version", options->version, "as after @ in FILE@VERSION (default: latest)");
  verb->add_option("--name", options->name,
                   "the file's name under the server's root, if there is no record");
  verb->add_flag("--dry-run", options->dry_run, "change nothing; print the steps only");
  OnVerb(*verb, context, action, options, RunRecover);
}

}  // namespace h5mirror::tools
