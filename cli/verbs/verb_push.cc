// h5mirror push: closed local files become the server's newest versions.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/cli_checks.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/output/progress.h"
#include "cli/verbs/each_file.h"
#include "cli/verbs/verbs.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"
#include "sync/resync.h"
#include "sync/upload.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::vector<std::string> locals;
  std::string name;
  std::string root;
  std::string comment;
  bool recursive = false;
  bool any = false;
  bool replace = false;
  bool dry_run = false;
  bool quiet = false;
  int jobs = 4;

  Content content() const { return any ? Content::kAny : Content::kHdf5Only; }
  ForeignFile foreign() const { return replace ? ForeignFile::kReplace : ForeignFile::kRefuse; }
};

// The result for one file.
struct Outcome {
  std::string local;
  std::string name;
  std::string server;
  PushAction action = PushAction::kSkip;
  PushResult result;
};

std::string_view ActionName(PushAction action) {
  switch (action) {
    case PushAction::kSkip:
      return "unchanged";
    case PushAction::kUpload:
      return "uploaded";
    case PushAction::kReplace:
      return "replaced";
  }
  return "unknown";
}

// The server has an earlier state of it, or one that has diverged: differences are found by
// digests.
absl::Status PushDifferences(Context& context, const Options& options, const FileArg& arg,
                             Outcome& outcome) {
  ResyncRequest request;
  request.verb = "push";
  request.local = outcome.local;
  request.mirror = arg;
  request.name = outcome.name;
  request.comment = options.comment;
  request.from = Side::kLocal;
  request.content = options.content();
  request.dry_run = options.dry_run;
  H5M_ASSIGN_OR_RETURN(const ResyncOutcome done, Resync(context, request));
  const bool same = done.action == ResyncAction::kLevel || done.action == ResyncAction::kEqual;
  if (same) outcome.action = PushAction::kSkip;
  outcome.result = {done.cut, done.version, done.sent_bytes};
  return absl::OkStatus();
}

absl::StatusOr<Outcome> PushOne(Context& context, const Options& options, const std::string& local,
                                const FileArg& arg) {
  Outcome outcome;
  outcome.local = local;
  H5M_ASSIGN_OR_RETURN(outcome.name, MirrorName(context, options.name, options.root, arg));
  H5M_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(arg.local, FileLock::kShared));
  H5M_RETURN_IF_ERROR(CheckNoEdit(file));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(arg));
  outcome.server = client->options().server;
  H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> server,
                       FindServerFile(*client, outcome.name));
  H5M_ASSIGN_OR_RETURN(outcome.action,
                       DecidePush(outcome.name, file, arg.record, server, options.foreign()));
  // The server has moved, or has another address: both sides are compared, and the record is of it.
  const bool moved = arg.record && !IsSameServer(arg.record->server, outcome.server);
  if (outcome.action == PushAction::kSkip && moved && !options.dry_run) {
    H5M_RETURN_IF_ERROR(PushDifferences(context, options, arg, outcome));
    return outcome;
  }
  if (outcome.action == PushAction::kSkip) {
    outcome.result.cut = arg.record->cut;
    outcome.result.version = arg.record->version;
    return outcome;
  }
  if (options.name.empty()) {
    H5M_RETURN_IF_ERROR(CheckNotRenamed(*client, outcome.name, file, arg.record, server));
  }
  H5M_RETURN_IF_ERROR(CheckContent(file, arg.record, options.content()));
  if (outcome.action == PushAction::kReplace && arg.record && arg.record->name == outcome.name) {
    H5M_RETURN_IF_ERROR(PushDifferences(context, options, arg, outcome));
    return outcome;
  }
  if (options.dry_run) return outcome;
  PushRequest request;
  request.name = outcome.name;
  request.server = client->options().server;
  request.tag = arg.tag;
  request.comment = options.comment;
  request.intent = outcome.action == PushAction::kUpload ? v1::INTENT_UPLOAD : v1::INTENT_REPLACE;
  if (server.has_value()) {
    H5M_ASSIGN_OR_RETURN(request.file_id, FromByteString(server->file_id()));
  }
  Progress progress(context.streams(), local, file.size_bytes());
  H5M_ASSIGN_OR_RETURN(outcome.result, Upload(*client, file, request, progress));
  if (server.has_value()) NoteFoundEqual(*client, *server, outcome.result.version);
  return outcome;
}

Json OutcomeToJson(const Options& options, const Outcome& outcome) {
  return Json{{"local", outcome.local},     {"file", outcome.name},
              {"server", outcome.server},   {"action", ActionName(outcome.action)},
              {"dry_run", options.dry_run}, {"version", outcome.result.version},
              {"cut", outcome.result.cut},  {"sent_bytes", outcome.result.sent_bytes}};
}

std::string OutcomeToText(const Options& options, const Outcome& outcome) {
  if (outcome.action == PushAction::kSkip) {
    return StrCat("unchanged ", outcome.local, " (", outcome.name, "@", outcome.result.version,
                  ")");
  }
  if (options.dry_run) {
    return StrCat(outcome.action == PushAction::kUpload ? "would upload " : "would replace ",
                  outcome.local, " as ", outcome.name);
  }
  return StrCat(ActionName(outcome.action), " ", outcome.local, " as ", outcome.name, "@",
                outcome.result.version, " (", HumanBytes(outcome.result.sent_bytes), " sent)");
}

// How many files became what.
class Tally {
 public:
  Tally(const Options& options, const FilesToPush& found)
      : options_(options), found_(found), start_(absl::Now()) {}

  // Thread-safe, as long as nobody asks for the summary.
  void Count(const Outcome& outcome) {
    ++counts_[static_cast<size_t>(outcome.action)];
    sent_bytes_ += outcome.result.sent_bytes;
  }

  FileOutcome Summary(int failed) const {
    const size_t fresh = Of(PushAction::kUpload), changed = Of(PushAction::kReplace);
    const size_t unchanged = Of(PushAction::kSkip);
    std::string text =
        StrCat(found_.files.size(), " files", options_.dry_run ? " would be: " : ": ", fresh,
               " new, ", changed, " changed, ", unchanged, " unchanged");
    const auto also = [&text](size_t count, std::string_view what) {
      if (count > 0) StrAppend(&text, ", ", count, " ", what);
    };
    also(static_cast<size_t>(failed), "failed");
    also(found_.skipped, "skipped (not HDF5)");
    also(found_.gone.size(), "gone here (the server keeps them)");
    if (!options_.dry_run) {
      StrAppend(&text, "; ", HumanBytes(sent_bytes_.load()), " sent in ",
                HumanDuration(absl::Trunc(absl::Now() - start_, absl::Milliseconds(1))));
    }
    const bool is_many = options_.recursive || found_.files.size() > 1;
    return {Json{{"summary",
                  {{"new", fresh},
                   {"changed", changed},
                   {"unchanged", unchanged},
                   {"failed", failed},
                   {"skipped", found_.skipped},
                   {"gone", found_.gone},
                   {"sent_bytes", sent_bytes_.load()}}}},
            is_many ? text : ""};
  }

 private:
  size_t Of(PushAction action) const { return counts_[static_cast<size_t>(action)]; }

  const Options& options_;
  const FilesToPush& found_;
  const absl::Time start_;
  std::atomic<size_t> counts_[3] = {};
  std::atomic<uint64_t> sent_bytes_ = 0;
};

absl::StatusOr<int> RunPush(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const FilesToPush found,
                       FindFilesToPush(options.locals, options.recursive, options.content()));
  if (!options.name.empty() && found.files.size() != 1) {
    return absl::InvalidArgumentError(
        StrCat("--name is for one file, and there are ", found.files.size()));
  }
  Tally tally(options, found);
  const EachFileExtras extras{
      .jobs = options.jobs,
      .total_bytes = found.total_bytes,
      .is_quiet = options.quiet,
      .summary = [&](int failed) { return tally.Summary(failed); },
  };
  const FileTurn turn = [&](Context& own, const std::string& local,
                            const FileArg& mirror) -> absl::StatusOr<FileOutcome> {
    H5M_ASSIGN_OR_RETURN(const Outcome outcome, PushOne(own, options, local, mirror));
    tally.Count(outcome);
    return FileOutcome{OutcomeToJson(options, outcome), OutcomeToText(options, outcome)};
  };
  H5M_ASSIGN_OR_RETURN(const int code, ForEachMirror(context, found.files, turn, extras));
  if (found.files.empty()) context.Note("no HDF5 file there; --any takes all files");
  return code;
}

}  // namespace

void AddPush(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("push", "Make closed local files the server's newest versions");
  verb->add_option("LOCAL", options->locals, "closed local files, or directories with -r")
      ->required();
  verb->add_flag("-r,--recursive", options->recursive, "all HDF5 files below directories");
  verb->add_option("-m,--comment", options->comment, "comment of the new versions");
  verb->add_option("--name", options->name, "name under the server's root (one file only)");
  verb->add_option("--root", options->root,
                   "name files without a record by their path below this directory "
                   "(default: root of client.toml; without one, HOST/absolute/path)");
  verb->add_flag("--replace", options->replace,
                 "take the place of another file of that name; its versions stay");
  verb->add_flag("--any", options->any, "also files that are not HDF5, or were not closed cleanly");
  verb->add_flag("--dry-run", options->dry_run, "change nothing; print the steps only");
  verb->add_option("-j,--jobs", options->jobs, "files that are sent at once (1 to 64)")
      ->capture_default_str()
      ->check(WholeNumber(1, 64));
  verb->add_flag("-q,--quiet", options->quiet, "say nothing but errors");
  OnVerb(*verb, context, action, options, RunPush);
}

}  // namespace h5mirror::tools
