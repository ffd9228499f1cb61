// h5mirror recover: the local file becomes the server's newest version.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/errno_status.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/closed_copy.h"
#include "tools/closed_record.h"
#include "tools/download.h"
#include "tools/file_arg.h"
#include "tools/local_file.h"
#include "tools/progress.h"
#include "tools/push_plan.h"
#include "tools/resync.h"
#include "tools/temp_file.h"
#include "tools/text.h"
#include "tools/verbs.h"
#include "tools/version_spec.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string local;
  std::string name;
  std::string version = "latest";
  bool dry_run = false;
};

constexpr absl::Duration kCommitTime = absl::Minutes(6);

// One recovery: where from, where to.
struct Plan {
  rpc::Client* client = nullptr;
  FileArg arg;
  v1::FileStatus status;       // the server's, before
  bool has_newer_cut = false;  // the server, than its newest version
  int64_t version = 0;
  std::optional<LocalFile> old_file;  // locked; unset: there is none
  std::string broken;                 // the old file's new name
};

// A name beside the local file that nothing has.
std::string NameForBroken(const std::string& local) {
  const std::string first = StrCat(
      local, ".broken-", absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
  std::string name = first;
  std::error_code ignored;
  for (int n = 2; std::filesystem::symlink_status(name, ignored).type() !=
                  std::filesystem::file_type::not_found;
       ++n) {
    name = StrCat(first, "-", n);
  }
  return name;
}

// Of several mirrors the one with the newest version, by the clock of the file's writer. Those that
// are away have no say.
absl::StatusOr<FileArg> NewestMirror(Context& context, const std::string& local) {
  H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors,
                       ResolveMirrorsOf(local, context.flags().client.server));
  if (mirrors.size() == 1) return mirrors[0];
  const FileArg* newest = nullptr;
  absl::Time newest_time;
  for (const FileArg& mirror : mirrors) {
    const absl::StatusOr<rpc::Client*> client = context.Connect(mirror.server);
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

// What was flushed and is in no version yet, as after a server was killed, must not be gone back
// past.
absl::Status KeepNewerCut(Context& context, Plan& plan) {
  v1::CommitVersionRequest commit;
  commit.set_name(plan.arg.name);
  commit.set_comment("the newest cut, kept by h5mirror recover");
  commit.mutable_wait();  // Nobody writes it.
  *commit.mutable_writer() = LocalWriter();
  commit.set_request_id(ToByteString(RandomBytes16()));
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

absl::StatusOr<Plan> MakePlan(Context& context, const Options& options) {
  Plan plan;
  H5M_ASSIGN_OR_RETURN(plan.arg, NewestMirror(context, options.local));
  if (!options.name.empty()) plan.arg.name = options.name;
  if (plan.arg.name.empty()) {
    return absl::NotFoundError(StrCat(
        options.local, ": no record of a mirror beside it; say which file it is with --name NAME"));
  }
  H5M_ASSIGN_OR_RETURN(const VersionSpec spec,
                       ParseVersionSpec(options.version, context.streams().zone));
  absl::StatusOr<LocalFile> old_file = LocalFile::Open(plan.arg.local, FileLock::kExclusive);
  if (old_file.ok()) {
    H5M_RETURN_IF_ERROR(CheckNoEdit(*old_file));
    plan.old_file = *std::move(old_file);
  } else if (!absl::IsNotFound(old_file.status())) {
    return old_file.status();
  }
  H5M_ASSIGN_OR_RETURN(plan.client, context.Connect(plan.arg.server));
  H5M_ASSIGN_OR_RETURN(plan.status, StatusOf(plan));
  H5M_RETURN_IF_ERROR(CheckNoLease(options.local, plan.status));
  plan.broken = NameForBroken(plan.arg.local.string());
  plan.has_newer_cut = HasNewerCut(plan.status);
  const bool wants_newest = options.version == "latest";
  if (plan.has_newer_cut && wants_newest) {
    if (options.dry_run) return plan;
    H5M_RETURN_IF_ERROR(KeepNewerCut(context, plan));
  }
  H5M_ASSIGN_OR_RETURN(plan.version, ResolveVersion(context, *plan.client, plan.arg.name, spec));
  return plan;
}

// Both open at offset 0 and of any size.
absl::StatusOr<bool> SameBytes(const LocalFile& old_file, const TempFile& fresh,
                               uint64_t size_bytes) {
  if (old_file.size_bytes() != size_bytes) return false;
  std::string a(1 << 20, '\0');
  std::string b(1 << 20, '\0');
  for (uint64_t offset = 0; offset < size_bytes; offset += a.size()) {
    H5M_ASSIGN_OR_RETURN(const size_t got_a, PreadUpTo(old_file.fd(), offset, a.data(), a.size(),
                                                       old_file.path().string()));
    H5M_ASSIGN_OR_RETURN(const size_t got_b,
                         PreadUpTo(fresh.fd(), offset, b.data(), b.size(), fresh.path()));
    if (got_a != got_b || memcmp(a.data(), b.data(), got_a) != 0) return false;
  }
  return true;
}

// The old file keeps a name at every moment: a second name first, then the rename over the
// first. Where there are no hard links, it is renamed away.
absl::Status KeepOldFile(const Plan& plan) {
  const std::string local = plan.arg.local.string();
  if (link(local.c_str(), plan.broken.c_str()) == 0) return absl::OkStatus();
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) {
    return ErrnoToStatus(errno, StrCat("keep ", local, " as ", plan.broken));
  }
  if (renameat2(AT_FDCWD, local.c_str(), AT_FDCWD, plan.broken.c_str(), RENAME_NOREPLACE) != 0) {
    return ErrnoToStatus(errno, StrCat("keep ", local, " as ", plan.broken));
  }
  return absl::OkStatus();
}

struct Outcome {
  v1::Version version;
  bool replaced = false;  // false: the local file held these bytes already
  FileStat stat;          // the local file's now
  // Where the local file differs from the version: a writer had the file open at its cut.
  std::optional<SuperblockPatch> patch;
  // Holds the lock on a new file until the record says what it is.
  std::optional<TempFile> fresh;
};

bool IsNewest(const Plan& plan, const v1::Version& version) {
  return version.version() == plan.status.newest_version().version() && !plan.has_newer_cut;
}

absl::Status WriteRecord(const Plan& plan, const Outcome& outcome) {
  const v1::Version& version = outcome.version;
  LocalRecord record;
  record.state = RecordState::kClean;
  H5M_ASSIGN_OR_RETURN(record.file_id, FromByteString(plan.status.file_id()));
  record.server = plan.client->options().server;
  record.name = plan.arg.name;
  record.cut = version.cut();
  record.version = version.version();
  record.stat = outcome.stat;
  record.since = absl::Now();
  if (!IsNewest(plan, version)) {
    record.state = RecordState::kDiverged;
    record.detail =
        StrCat("recovered to version ", version.version(), ", which is not the server's newest");
  }
  if (IsNewest(plan, version) && outcome.patch) {
    return WriteClosedRecord(plan.arg.place(), std::move(record), *outcome.patch);
  }
  H5M_RETURN_IF_ERROR(WriteLocalRecord(plan.arg.place(), record));
  RemoveDirtyMap(plan.arg.place());
  return absl::OkStatus();
}

// Another origin's file is written from here from now on. Of this one's the server learns that it
// lacks nothing any more: else it would go on to say that its writer is missing.
absl::Status TellServer(const Plan& plan, const Outcome& outcome) {
  const v1::Version& version = outcome.version;
  H5M_ASSIGN_OR_RETURN(const v1::Origin origin, LocalOrigin(plan.arg.local));
  const v1::Origin& old = plan.status.origin();
  const bool same = origin.machine_id() == old.machine_id() && origin.path() == old.path();
  if (!IsNewest(plan, version)) return absl::OkStatus();
  if (same) {
    if (outcome.patch) return absl::OkStatus();  // It lacks that.
    v1::RecordCheckRequest check;
    check.set_name(plan.arg.name);
    check.set_version(version.version());
    // The file is right without it, and who may only read can recover.
    static_cast<void>(plan.client->RecordCheck(check));
    return absl::OkStatus();
  }
  v1::AdoptFileRequest request;
  request.set_name(plan.arg.name);
  request.set_version(version.version());
  *request.mutable_origin() = origin;
  *request.mutable_local() = ToProto(outcome.stat);
  return plan.client->AdoptFile(request).status();
}

absl::StatusOr<Outcome> Recover(Context& context, const Plan& plan) {
  Outcome outcome;
  H5M_ASSIGN_OR_RETURN(TempFile fresh, TempFile::Create(plan.arg.local));
  absl::StatusOr<v1::Version> version;
  {
    Progress progress(context.streams(), plan.arg.local.string(), 0);
    version = DownloadToFile(*plan.client, plan.arg.name, plan.version, progress, fresh.fd(),
                             fresh.path());
  }
  H5M_RETURN_IF_ERROR(version.status());
  outcome.version = *version;
  H5M_ASSIGN_OR_RETURN(
      outcome.patch,
      CloseCopy(fresh.fd(), static_cast<uint64_t>(version->size_bytes()), fresh.path()));
  if (plan.old_file.has_value()) {
    H5M_RETURN_IF_ERROR(plan.old_file->CheckUnchanged());
    H5M_ASSIGN_OR_RETURN(const bool same, SameBytes(*plan.old_file, fresh,
                                                    static_cast<uint64_t>(version->size_bytes())));
    outcome.stat = plan.old_file->stat();
    if (same) return outcome;
    fresh.CopyOwnerAndMode(plan.old_file->fd());
    H5M_RETURN_IF_ERROR(KeepOldFile(plan));
  }
  outcome.replaced = true;
  H5M_ASSIGN_OR_RETURN(
      outcome.stat,
      fresh.CommitLocked(plan.old_file.has_value() ? Existing::kReplace : Existing::kRefuse));
  outcome.fresh.emplace(std::move(fresh));
  return outcome;
}

// What would become of a cut that is in no version yet.
void ReportNewerCut(Context& context, const Plan& plan, const Options& options,
                    const std::string& broken) {
  if (context.json()) {
    context.Print(Json{{"local", options.local},
                       {"file", plan.arg.name},
                       {"action", "would_recover"},
                       {"version", nullptr},
                       {"broken", broken.empty() ? Json(nullptr) : Json(broken)}});
    return;
  }
  context.Say(StrCat(NewerCutText(plan), ": would make that a version, and ", options.local,
                     " the same",
                     broken.empty() ? "" : StrCat("; the old one is kept as ", broken)));
}

void Report(Context& context, const Plan& plan, const Options& options, std::string_view action,
            const v1::Version& version, const std::string& broken) {
  if (context.json()) {
    context.Print(Json{{"local", options.local},
                       {"file", plan.arg.name},
                       {"action", action},
                       {"version", VersionToJson(version)},
                       {"broken", broken.empty() ? Json(nullptr) : Json(broken)}});
    return;
  }
  const std::string what = StrCat(plan.arg.name, "@", version.version());
  const std::string kept = broken.empty() ? "" : StrCat("; the old one is kept as ", broken);
  if (action == "would_recover") {
    context.Say(StrCat("would make ", options.local, " ", what, kept));
  } else if (action == "equal") {
    context.Say(StrCat(options.local, " is ", what, " already; its record says so now"));
  } else {
    context.Say(StrCat("recovered ", options.local, " to ", what, " (",
                       HumanBytes(static_cast<uint64_t>(version.size_bytes())), ")", kept));
  }
}

void CloseOnServer(Context& context, const Plan& plan, const Options& options) {
  ResyncRequest request;
  request.verb = "recover";
  request.local = options.local;
  request.name = plan.arg.name;
  request.mirror = plan.arg;
  request.comment = StrCat("recover: version ", plan.version, " with a closed superblock");
  SendClosedSuperblock(context, std::move(request));
}

absl::StatusOr<int> RunRecover(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(Plan plan, MakePlan(context, options));
  const std::string broken = plan.old_file.has_value() ? plan.broken : "";
  if (options.dry_run && plan.version == 0) {
    ReportNewerCut(context, plan, options, broken);
    return kExitOk;
  }
  if (options.dry_run) {
    v1::GetVersionRequest request;
    request.set_name(plan.arg.name);
    request.set_version(plan.version);
    H5M_ASSIGN_OR_RETURN(const v1::Version version, plan.client->GetVersion(request));
    Report(context, plan, options, "would_recover", version, broken);
    return kExitOk;
  }
  H5M_ASSIGN_OR_RETURN(Outcome outcome, Recover(context, plan));
  H5M_RETURN_IF_ERROR(TellServer(plan, outcome));
  H5M_RETURN_IF_ERROR(WriteRecord(plan, outcome));
  Report(context, plan, options, outcome.replaced ? "recovered" : "equal", outcome.version,
         outcome.replaced ? broken : "");
  const int64_t number = outcome.version.version();
  if (outcome.patch) {
    context.Note(StrCat(plan.arg.name, "@", number,
                        " was cut while a writer had the file open: the local file has the "
                        "superblock of a closed file"));
  }
  if (!IsNewest(plan, outcome.version)) {
    const std::string onwards = outcome.patch ? "resync --from local" : "adopt";
    context.Note(StrCat(plan.has_newer_cut ? NewerCutText(plan)
                                           : StrCat("the server's newest is version ",
                                                    plan.status.newest_version().version()),
                        "; to go on from version ", number, ": h5mirror rollback ", plan.arg.name,
                        "@", number, " && h5mirror ", onwards, " ", options.local));
  } else if (outcome.patch) {
    // It takes the file's lock itself.
    outcome.fresh.reset();
    plan.old_file.reset();
    CloseOnServer(context, plan, options);
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
                   "the file's name under the server's root, where there is no record");
  verb->add_flag("--dry-run", options->dry_run, "say what would be done");
  verb->callback([&context, &action, options] {
    action = [&context, options] { return RunRecover(context, *options); };
  });
}

}  // namespace h5mirror::tools
