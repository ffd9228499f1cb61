// h5mirror restore: one object of a version comes back.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "base/errno_status.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_at_version.h"
#include "cli/context/object_at_version.h"
#include "cli/output/progress.h"
#include "cli/process/child.h"
#include "cli/process/install_dirs.h"
#include "cli/process/io.h"
#include "cli/restore/restore_job.h"
#include "cli/verbs/restore_ends.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

// A copy takes as long as it takes.
constexpr absl::Duration kForever = absl::Hours(24 * 365);

struct Options {
  std::string object;
  std::string into;
  std::string as;
  std::vector<std::string> attributes;
  std::string comment;
  bool replace = false;
  bool dry_run = false;
};

struct Restore {
  std::string path;
  std::string as;
  std::vector<std::string> attributes;
  RestoreSource source;
  RestoreTarget target;
  std::string comment;
};

// Files for the helper, which inherits them. They may hold a token, so they are in memory only, and
// end with both processes.
class JobFiles {
 public:
  // The path of a new file, in this process and in the helper.
  absl::StatusOr<std::string> Write(const char* name, const std::string& text) {
    OwnedFd file(memfd_create(name, 0));
    if (file.get() < 0 || fchmod(file.get(), 0600) != 0) {
      return ErrnoToStatus(errno, StrCat("make the file ", name, " in memory"));
    }
    H5M_RETURN_IF_ERROR(PwriteAll(file.get(), 0, text, name));
    const std::string path = StrCat("/proc/self/fd/", file.get());
    files_.push_back(std::move(file));
    return path;
  }

 private:
  std::vector<OwnedFd> files_;
};

// At most so many bytes of a comment that nobody has written.
constexpr size_t kOwnCommentMax = 1000;
// That the driver takes (docs/reference/driver-keys.md).
constexpr size_t kCommentMax = 4096;

std::string CommentOf(const Restore& restore, const Options& options) {
  if (!options.comment.empty()) return options.comment;
  std::string what = restore.path;
  if (!restore.attributes.empty()) {
    what = StrCat("attribute ", absl::StrJoin(restore.attributes, ", "), " of ", restore.path);
  }
  const std::string as = restore.as == restore.path ? "" : StrCat(" as ", restore.as);
  const std::string from =
      options.into.empty() ? StrCat("version ", restore.source.version) : restore.source.said();
  std::string comment = StrCat("restore of ", what, as, " from ", from);
  if (comment.size() <= kOwnCommentMax) return comment;
  size_t end = kOwnCommentMax;
  while (end > 0 && (static_cast<unsigned char>(comment[end]) & 0xC0) == 0x80) --end;
  return comment.substr(0, end) + "...";
}

// A new file is made beside its name, and takes that when it is whole.
std::string WhileNew(const fs::path& path) {
  return (path.parent_path() / StrCat(".", path.filename().string(), ".h5mirror-", getpid()))
      .string();
}

absl::StatusOr<Restore> MakePlan(Context& context, const Options& options) {
  Restore restore;
  if (options.comment.size() > kCommentMax) {
    return absl::InvalidArgumentError(StrCat("--comment has ", options.comment.size(),
                                             " bytes, and may have ", kCommentMax, " at most"));
  }
  H5M_ASSIGN_OR_RETURN(const ObjectAtVersion object,
                       ParseObjectAtVersion(options.object, context.streams().zone));
  restore.path = restore.as = object.path;
  if (!options.as.empty()) {
    H5M_ASSIGN_OR_RETURN(restore.as, PathInFile(options.as));
  }
  for (const std::string& name : options.attributes) {
    auto& all = restore.attributes;
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  if (restore.attributes.empty() && (restore.path == "/" || restore.as == "/")) {
    return absl::InvalidArgumentError(
        StrCat("'", options.object,
               "': the root group is the whole file: h5mirror rollback and "
               "recover bring that back; --attribute its attributes"));
  }
  H5M_ASSIGN_OR_RETURN(restore.source, FindRestoreSource(context, object.file_at_version));
  H5M_ASSIGN_OR_RETURN(restore.target, FindRestoreTarget(restore.source, options.into));
  Context asking(context.flags(), context.streams());
  H5M_RETURN_IF_ERROR(CheckRestoreTarget(asking, restore.target, !options.dry_run));
  restore.comment = CommentOf(restore, options);
  return restore;
}

absl::StatusOr<RestoreJob> JobOf(Context& context, const Restore& restore, const Options& options,
                                 JobFiles& files) {
  const RestoreSource& source = restore.source;
  const RestoreTarget& target = restore.target;
  const bool is_remote = target.kind == RestoreTarget::Kind::kRemote;
  RestoreJob job;
  H5M_ASSIGN_OR_RETURN(const fs::path plugin_dir, FindPluginDir(context.flags().plugin_dir));
  job.plugin_dir = plugin_dir.string();
  H5M_ASSIGN_OR_RETURN(const std::string source_config,
                       files.Write("source.toml", TomlOf(KeysOfSource(context, source))));
  job.source = {source.said(),
                source.is_embedded() ? PathOfEmbedded(source.file.server).string()
                                     : StrCat("/", source.file.name),
                "@" + source_config};
  job.target = {target.said(), is_remote ? StrCat("/", source.file.name) : target.local.string(),
                ""};
  if (!options.dry_run || is_remote) {
    DriverKeys keys = KeysOfTarget(context, source, target, restore.comment);
    H5M_ASSIGN_OR_RETURN(const std::string config, files.Write("target.toml", TomlOf(keys)));
    job.target.config = "@" + config;
  }
  job.makes_target = target.is_new;
  job.is_mirrored = target.kind != RestoreTarget::Kind::kPlain;
  if (target.is_new && !options.dry_run) {
    job.becomes = job.target.path;
    job.target.path = WhileNew(target.local);
  }
  job.path = restore.path;
  job.as = restore.as;
  job.attributes = restore.attributes;
  job.replaces = options.replace;
  job.dry_run = options.dry_run;
  if (!options.dry_run && !is_remote) job.grows = job.target.path;
  return job;
}

absl::StatusOr<RestoreResult> RunHelper(Context& context, const RestoreJob& job, JobFiles& files) {
  const auto helper_file = FindHelper(kRestoreHelperFile);
  if (!helper_file.ok()) {
    return absl::NotFoundError(
        StrCat("restore works on HDF5 files with a helper that is built where there is HDF5 1.14 "
               "or later: ",
               ToStd(helper_file.status().message())));
  }
  H5M_ASSIGN_OR_RETURN(const std::string job_file, files.Write("job", EncodeJob(job)));
  H5M_ASSIGN_OR_RETURN(const auto helper, Helper::Start({helper_file->string(), job_file}));
  Progress progress(context.streams(), StrCat("restore ", job.path, " into ", job.target.said), 0);
  while (true) {
    const absl::StatusOr<std::string> line = helper->ReadLine(kForever);
    if (!line.ok()) {
      if (!job.becomes.empty()) unlink(job.target.path.c_str());
      const std::string_view then = !job.becomes.empty() ? " was not made"
                                    : job.is_mirrored
                                        ? " is as at its last flush; h5mirror recover brings its "
                                          "newest version back"
                                        : " is as at its last flush";
      return absl::InternalError(
          StrCat(helper_file->string(), " ended before it was done: ", job.target.said, then));
    }
    const std::string_view text = *line;
    uint64_t bytes = 0;
    if (text.starts_with(kResultLine)) return DecodeResult(text.substr(kResultLine.size()));
    if (text.starts_with(kProgressLine) &&
        absl::SimpleAtoi(ToAbsl(text.substr(kProgressLine.size())), &bytes)) {
      progress.Update(bytes);
    }
  }
}

// The version that came of it; unset: none is known.
absl::StatusOr<std::optional<int64_t>> NewVersion(Context& context, const Restore& restore) {
  using Kind = RestoreTarget::Kind;
  const RestoreTarget& target = restore.target;
  if (target.kind == Kind::kPlain) return std::nullopt;
  if (target.kind == Kind::kMirrored) {
    H5M_ASSIGN_OR_RETURN(const auto records, FindLocalRecords(target.local));
    std::optional<int64_t> version;
    for (const FoundRecord& found : records) {
      if (found.record.state == RecordState::kClean) {
        if (!version) version = found.record.version;
        continue;
      }
      context.Note(StrCat(target.said(), " has the object, and its mirror on ", found.record.server,
                          " is ", RecordStateName(found.record.state),
                          found.record.detail.empty() ? "" : ": ", found.record.detail,
                          "; h5mirror resync ", target.said(), " brings it level"));
    }
    return version;
  }
  Context asking(context.flags(), context.streams());
  FileArg file;
  if (target.kind == Kind::kEmbedded) {
    H5M_ASSIGN_OR_RETURN(file, ResolveFileArg(target.local.string(), std::nullopt));
  } else {
    file = restore.source.file;
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, asking.Connect(file));
  v1::GetFileRequest request;
  request.set_name(file.name);
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status, client->GetFile(request, absl::Seconds(30)));
  return status.newest_version().version();
}

const char* ActionOf(const RestoreResult& result, const Options& options) {
  if (options.dry_run) return result.replaced ? "would_replace" : "would_restore";
  return result.replaced ? "replaced" : "restored";
}

Json ReportJson(const Restore& restore, const RestoreResult& result, const Options& options,
                const std::optional<int64_t>& version) {
  Json lost = Json::array();
  for (const LostReferences& each : result.lost) {
    lost.push_back({{"object", each.object},
                    {"leads_to", each.leads_to},
                    {"count", each.count},
                    {"why", each.why},
                    {"removed", each.removed}});
  }
  Json splits = Json::array();
  for (const Split& each : result.splits) {
    splits.push_back({{"object", each.object}, {"other", each.other}});
  }
  return Json{{"file", restore.source.file.name},
              {"from_version", restore.source.version},
              {"path", restore.path},
              {"as", restore.as},
              {"into", restore.target.said()},
              {"action", ActionOf(result, options)},
              {"kind", result.kind},
              {"attribute_names", restore.attributes},
              {"objects", result.objects},
              {"links", result.links},
              {"attributes", result.attributes},
              {"bytes", result.bytes},
              {"made_groups", result.made_groups},
              {"other_names", result.other_names},
              {"references", result.references},
              {"led_over", result.led_over},
              {"lost_references", lost},
              {"old_kind", result.old_kind.empty() ? Json(nullptr) : Json(result.old_kind)},
              {"old_objects", result.old_objects},
              {"old_bytes", result.old_bytes},
              {"split_count", result.split_count},
              {"splits", splits},
              {"scaled_count", result.scaled_count},
              {"scaled", result.scaled},
              {"version", version ? Json(*version) : Json(nullptr)},
              {"dry_run", options.dry_run}};
}

std::string Count(uint64_t count, const char* what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string OldText(const RestoreResult& result) {
  std::string text = StrCat(", instead of a ", result.old_kind);
  if (result.old_kind.starts_with("external")) text = StrCat(", instead of an ", result.old_kind);
  if (result.old_objects == 0) return text;
  return StrCat(text, " (", Count(result.old_objects, "object"), ", ", HumanBytes(result.old_bytes),
                ")");
}

std::string ReportText(const Restore& restore, const RestoreResult& result, const Options& options,
                       const std::optional<int64_t>& version) {
  std::string text = StrCat(options.dry_run ? "would " : "",
                            result.replaced   ? (options.dry_run ? "replace " : "replaced ")
                            : options.dry_run ? "restore "
                                              : "restored ");
  if (restore.attributes.empty()) {
    StrAppend(&text, result.kind, " ", restore.as);
  } else {
    StrAppend(&text, "attribute ", absl::StrJoin(restore.attributes, ", "), " of ", restore.as);
  }
  StrAppend(&text, " of ", restore.target.said(), " from ", restore.source.said(),
            restore.as == restore.path ? "" : StrCat(":", restore.path));
  if (restore.attributes.empty() && result.objects > 0) {
    StrAppend(&text, " (", Count(result.objects, "object"), ", ", HumanBytes(result.bytes), ")");
  }
  if (!result.old_kind.empty()) StrAppend(&text, OldText(result));
  if (version) StrAppend(&text, ": version ", *version);
  return text;
}

// Why a reference was lost, for people.
std::string WhyLost(const LostReferences& lost, const std::string& target) {
  const std::string place = lost.removed ? "the restored object" : target;
  if (lost.why == "other_kind") return StrCat("which is of another kind in ", place);
  if (lost.why == "other_file") return StrCat("which is a link to another file in ", place);
  if (lost.why == "too_small") return StrCat("which is too small for the region in ", place);
  if (lost.why == "no_region") return "of which the region cannot be read";
  if (lost.why == "no_name") return "which no path leads to";
  return StrCat("which ", place, " does not have");
}

void NoteLost(Context& context, const LostReferences& lost, const std::string& target,
              bool dry_run) {
  const bool helps = !lost.removed && lost.why == "missing";
  context.Note(StrCat(Count(lost.count, "reference"), " of ", lost.object, " to ", lost.leads_to,
                      ", ", WhyLost(lost, target), ", ", dry_run ? "would become" : "became",
                      " null", helps ? "; restore that, then this again with --replace" : ""));
}

void NoteSplits(Context& context, const RestoreResult& result, bool dry_run) {
  for (const Split& each : result.splits) {
    context.Note(StrCat(each.object, " and ", each.other, " were one object, and ",
                        dry_run ? "would be" : "are", " two: ", each.other, " stays as it is"));
  }
  if (const uint64_t rest = result.split_count - result.splits.size(); rest > 0) {
    context.Note(StrCat("the same of ", rest, " more"));
  }
}

void NoteScaled(Context& context, const RestoreResult& result) {
  for (const std::string& each : result.scaled) {
    context.Note(StrCat(each,
                        " leads to a dimension scale, whose list may lack it: attach the "
                        "scale again"));
  }
  if (const uint64_t rest = result.scaled_count - result.scaled.size(); rest > 0) {
    context.Note(StrCat("the same of ", rest, " more"));
  }
}

void NoteRest(Context& context, const Restore& restore, const RestoreResult& result,
              const Options& options) {
  if (result.other_names > 0) {
    context.Note(StrCat(Count(result.other_names, "hard link"), " elsewhere in the file still ",
                        result.other_names == 1 ? "leads" : "lead", " to the old object of ",
                        restore.as));
  }
  for (const LostReferences& each : result.lost) {
    NoteLost(context, each, restore.target.said(), options.dry_run);
  }
  NoteSplits(context, result, options.dry_run);
  NoteScaled(context, result);
}

absl::StatusOr<int> RunRestore(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const Restore restore, MakePlan(context, options));
  JobFiles files;
  H5M_ASSIGN_OR_RETURN(const RestoreJob job, JobOf(context, restore, options, files));
  H5M_ASSIGN_OR_RETURN(const RestoreResult result, RunHelper(context, job, files));
  std::optional<int64_t> version;
  if (!options.dry_run) {
    auto made = NewVersion(context, restore);
    if (!made.ok()) context.Note(ToStd(made.status().message()));
    if (made.ok()) version = *made;
  }
  if (context.json()) context.Print(ReportJson(restore, result, options, version));
  context.Say(ReportText(restore, result, options, version));
  NoteRest(context, restore, result, options);
  return kExitOk;
}

}  // namespace

void AddRestore(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "restore", "Bring one object of a version back: a group, dataset, type, link or attribute");
  verb->add_option("FILE@VERSION:/PATH", options->object, StrCat("the object in ", kVersionHelp))
      ->required();
  verb->add_option("--into", options->into,
                   "the local HDF5 file to restore into; it is made if it is missing (default: "
                   "FILE itself)");
  verb->add_option("--as", options->as, "the object's path in the file (default: its old path)");
  verb->add_option("--attribute", options->attributes,
                   "restore only this attribute, to the present object; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_flag("--replace", options->replace, "replace the present object or attribute");
  verb->add_flag("--dry-run", options->dry_run, "change nothing; print the steps only");
  verb->add_option("-m,--comment", options->comment, "comment of the new version");
  OnVerb(*verb, context, action, options, RunRestore);
}

}  // namespace h5mirror::tools
