// h5mirror resync: local files and their mirrors become the same again.
#include <map>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/verbs/each_file.h"
#include "cli/verbs/verbs.h"
#include "sync/resync.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::vector<std::string> locals;
  ResyncRequest request;  // for each of them, but for `local`
  bool any = false;
};

std::string_view ActionName(ResyncAction action) {
  switch (action) {
    case ResyncAction::kLevel:
      return "unchanged";
    case ResyncAction::kEqual:
      return "equal";
    case ResyncAction::kSent:
      return "sent";
    case ResyncAction::kUpload:
      return "uploaded";
    case ResyncAction::kFetch:
      return "fetched";
  }
  return "unknown";
}

Json OutcomeToJson(const ResyncRequest& request, const ResyncOutcome& outcome, double seconds) {
  return Json{
      {"local", request.local},
      {"file", outcome.name},
      {"server", outcome.server},
      {"action", ActionName(outcome.action)},
      {"dry_run", request.dry_run},
      {"version", outcome.version},
      {"cut", outcome.cut},
      {"kept_version", outcome.kept_version == 0 ? Json(nullptr) : Json(outcome.kept_version)},
      {"differing_bytes", outcome.differing_bytes},
      {"sent_bytes", outcome.sent_bytes},
      {"received_bytes", outcome.received_bytes},
      {"digest_bytes", outcome.digest_bytes},
      {"superblock_closed", outcome.superblock_closed},
      {"seconds", seconds}};
}

std::string Kept(const ResyncOutcome& outcome) {
  if (outcome.kept_version == 0) return "";
  return StrCat("; the former content is version ", outcome.kept_version);
}

std::string_view Closed(const ResyncOutcome& outcome) {
  return outcome.superblock_closed ? "; it has the superblock of a closed file" : "";
}

std::string OutcomeToText(const ResyncRequest& request, const ResyncOutcome& outcome,
                          double seconds) {
  const std::string file = StrCat(outcome.name, "@", outcome.version);
  const std::string differing = HumanBytes(outcome.differing_bytes);
  const std::string cost = StrCat(HumanBytes(outcome.digest_bytes), " of digests, ",
                                  HumanDuration(absl::Seconds(seconds)));
  switch (outcome.action) {
    case ResyncAction::kLevel:
      return StrCat("unchanged ", request.local, " (", file, ")");
    case ResyncAction::kEqual:
      return StrCat(request.local, " is the same as ", file,
                    request.dry_run ? "" : "; its record says so now", " (", cost, ")");
    case ResyncAction::kUpload:
      if (request.dry_run) return StrCat("would upload ", request.local, " as ", outcome.name);
      return StrCat("uploaded ", request.local, " as ", file, " (", HumanBytes(outcome.sent_bytes),
                    " sent)");
    case ResyncAction::kSent:
      if (request.dry_run) {
        return StrCat("would send ", HumanBytes(outcome.sent_bytes), " of ", request.local, " to ",
                      outcome.name, ", which differs in ", differing, " (", cost, ")");
      }
      return StrCat("resynced ", file, " from ", request.local, ": ", differing, " differed, ",
                    HumanBytes(outcome.sent_bytes), " sent (", cost, ")", Kept(outcome));
    case ResyncAction::kFetch:
      if (request.dry_run) {
        return StrCat("would fetch the differences of ", outcome.name, " to ", request.local, ", ",
                      differing, ", and keep the local bytes as a version (", cost, ")");
      }
      return StrCat("resynced ", request.local, " from ", file, ": ", differing, " differed, ",
                    HumanBytes(outcome.received_bytes), " fetched (", cost,
                    "); the local bytes are version ", outcome.kept_version);
  }
  return "";
}

// The local file cannot become equal to several servers.
absl::Status CheckOneIsRight(Context& context, const Options& options) {
  if (options.request.from != Side::kRemote) return absl::OkStatus();
  for (const std::string& local : options.locals) {
    H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors,
                         ResolveMirrorsOf(local, context.flags().client.server));
    if (mirrors.size() == 1) continue;
    std::string servers;
    for (const FileArg& mirror : mirrors) {
      StrAppend(&servers, servers.empty() ? "" : ", ", mirror.server);
    }
    return absl::InvalidArgumentError(StrCat(
        local, " has several mirrors (", servers,
        "): name the one that is right, h5mirror --server SERVER resync --from remote ", local));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunResync(Context& context, const Options& options) {
  if (!options.request.name.empty() && options.locals.size() != 1) {
    return absl::InvalidArgumentError(
        StrCat("--name is for one file, and there are ", options.locals.size()));
  }
  H5M_RETURN_IF_ERROR(CheckOneIsRight(context, options));
  ResyncRequest request = options.request;
  request.content = options.any ? Content::kAny : Content::kHdf5Only;
  return ForEachMirror(context, options.locals,
                       [&](Context& own, const std::string& local,
                           const FileArg& mirror) -> absl::StatusOr<FileOutcome> {
                         request.local = local;
                         request.mirror = mirror;
                         const absl::Time start = absl::Now();
                         H5M_ASSIGN_OR_RETURN(const ResyncOutcome outcome, Resync(own, request));
                         const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
                         return FileOutcome{
                             OutcomeToJson(request, outcome, seconds),
                             StrCat(OutcomeToText(request, outcome, seconds), Closed(outcome))};
                       });
}

}  // namespace

void AddResync(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  ResyncRequest& request = options->request;
  CLI::App* verb = app.add_subcommand(
      "resync", "Make closed local files and their mirrors equal again, by their differences");
  verb->add_option("LOCAL", options->locals, "closed local files")->required();
  verb->add_option("--from", request.from,
                   "the side that is right; the other one stays a version (default: the local "
                   "side, if that is certain)")
      ->transform(OneOfEnum(
          std::map<std::string, Side>{{"local", Side::kLocal}, {"remote", Side::kRemote}}))
      ->option_text("local|remote");
  verb->add_option("-m,--comment", request.comment, "comment of the new versions");
  verb->add_option("--name", request.name, "name under the server's root (one file only)");
  verb->add_flag("--any", options->any, "also files that are not HDF5, or were not closed cleanly");
  verb->add_flag("--dry-run", request.dry_run, "change nothing; print the bytes to send");
  OnVerb(*verb, context, action, options, RunResync);
}

}  // namespace h5mirror::tools
