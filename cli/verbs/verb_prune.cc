// h5mirror prune: drops versions, and gives their space back.
#include <memory>

#include "absl/strings/str_join.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/verbs/retention_flags.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  RetentionFlags keep;
  bool dry_run = false;
};

constexpr char kTeach[] =
    "say what to keep, e.g. --keep-daily 7 --keep-weekly 4 --keep-tag published; all else but the "
    "newest version is dropped for good, and --dry-run shows it first (--keep-last 1 keeps the "
    "newest alone)";

// The plan, as it comes, and the result.
class Pruning {
 public:
  Pruning(Context& context, std::string label)
      : context_(context), progress_(context.streams(), std::move(label), 0, "versions") {}

  absl::Status Take(const v1::PruneVersionsResponse& message) {
    for (const v1::PlannedVersion& planned : message.plan()) Add(planned);
    progress_.set_total_bytes(static_cast<uint64_t>(message.versions_to_drop()));
    progress_.Update(static_cast<uint64_t>(message.versions_dropped()));
    // The end of the plan says about how much, what follows how much it was.
    if (!planned_ && (message.versions_to_drop() > 0 || message.freed_bytes() > 0)) {
      planned_ = true;
      estimated_bytes_ = message.freed_bytes();
    } else {
      freed_bytes_ = message.freed_bytes();
    }
    versions_dropped_ = message.versions_dropped();
    return absl::OkStatus();
  }

  void PrintPlan() {
    context_.Say(StrCat("keep ", kept_.size(), kept_.size() == 1 ? " version:" : " versions:"));
    PrintTable(kept_);
    if (dropped_.empty()) {
      context_.Say("drop none");
      return;
    }
    context_.Say(
        StrCat("drop ", dropped_.size(), dropped_.size() == 1 ? " version:" : " versions:"));
    PrintTable(dropped_);
  }

  Json ToJson(const std::string& file, bool dry_run) const {
    Json keep = Json::array(), drop = Json::array();
    for (const v1::PlannedVersion& planned : kept_) {
      Json version = VersionToJson(planned.version());
      version["kept_by"] = planned.kept_by();
      keep.push_back(std::move(version));
    }
    for (const v1::PlannedVersion& planned : dropped_) {
      drop.push_back(VersionToJson(planned.version()));
    }
    return Json{{"file", file},
                {"dry_run", dry_run},
                {"keep", keep},
                {"drop", drop},
                {"estimated_bytes", estimated_bytes_},
                {"versions_dropped", versions_dropped_},
                {"freed_bytes", freed_bytes_}};
  }

  int64_t versions_dropped() const { return versions_dropped_; }
  int64_t estimated_bytes() const { return estimated_bytes_; }
  int64_t freed_bytes() const { return freed_bytes_; }

 private:
  void Add(const v1::PlannedVersion& planned) {
    (planned.kept_by().empty() ? dropped_ : kept_).push_back(planned);
  }
  void PrintTable(const std::vector<v1::PlannedVersion>& versions) {
    if (context_.json()) return;
    Table table({{"VERSION", Align::kRight},
                 {"TIME", Align::kLeft},
                 {"KEPT BY", Align::kLeft},
                 {"TAGS", Align::kLeft, Narrow::kClip},
                 {"COMMENT", Align::kLeft, Narrow::kClip},
                 {"SIZE", Align::kRight, Narrow::kLeaveOut}});
    for (const v1::PlannedVersion& planned : versions) {
      const v1::Version& version = planned.version();
      table.AddRow({StrCat(version.version()),
                    LocalTime(FromProto(version.server_time()), context_.streams().zone),
                    absl::StrJoin(planned.kept_by(), ", "), absl::StrJoin(version.tags(), ","),
                    version.comment(), HumanBytes(static_cast<uint64_t>(version.size_bytes()))});
    }
    context_.Print(table);
  }

  Context& context_;
  Progress progress_;
  std::vector<v1::PlannedVersion> kept_, dropped_;
  int64_t versions_dropped_ = 0;
  bool planned_ = false;  // the plan has come to its end
  int64_t estimated_bytes_ = 0;
  int64_t freed_bytes_ = 0;
};

absl::StatusOr<int> RunPrune(Context& context, const Options& options) {
  if (IsEmpty(options.keep)) return absl::InvalidArgumentError(kTeach);
  v1::PruneVersionsRequest request;
  H5M_ASSIGN_OR_RETURN(*request.mutable_policy(), ToPolicy(options.keep));
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  H5M_RETURN_IF_ERROR(CheckTags(context, file, options.keep));
  request.set_name(file.name);
  request.set_dry_run(options.dry_run);
  auto pruning = std::make_unique<Pruning>(context, StrCat("prune ", file.name));
  H5M_RETURN_IF_ERROR(file.client->PruneVersions(
      request,
      [&pruning](const v1::PruneVersionsResponse& message) { return pruning->Take(message); }));
  if (context.json()) {
    context.Print(pruning->ToJson(file.name, options.dry_run));
    return kExitOk;
  }
  pruning->PrintPlan();
  if (options.dry_run) {
    context.Say(StrCat("nothing was dropped: --dry-run; it would give back about ",
                       HumanBytes(static_cast<uint64_t>(pruning->estimated_bytes()))));
  } else {
    context.Say(StrCat("dropped ", pruning->versions_dropped(), " versions, ",
                       HumanBytes(static_cast<uint64_t>(pruning->freed_bytes())), " given back"));
  }
  return kExitOk;
}

}  // namespace

void AddPrune(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("prune", "Drop old versions of a file by a policy, for good");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  AddRetentionFlags(*verb, options->keep);
  verb->add_flag("--dry-run", options->dry_run, "only list retained and dropped versions");
  OnVerb(*verb, context, action, options, RunPrune);
}

}  // namespace h5mirror::tools
