// h5mirror rehome: records of a server that has moved name its new address.
#include <algorithm>
#include <memory>

#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/exit_code.h"
#include "cli/context/file_arg.h"
#include "cli/output/json.h"
#include "cli/output/progress.h"
#include "cli/verbs/verbs.h"
#include "rpc/configured_servers.h"
#include "sync/compare.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string from;
  bool dry_run = false;
};

// The same servers of a cluster in the same order, however they are written.
bool IsSameList(const std::string& a, const std::string& b) {
  const std::vector<std::string> own = ClusterServers(a), other = ClusterServers(b);
  const auto same = [](const std::string& one, const std::string& two) {
    return CanonicalServer(one) == CanonicalServer(two);
  };
  return std::equal(own.begin(), own.end(), other.begin(), other.end(), same);
}

// Of one record that was to be rewritten.
struct Outcome {
  std::string local;
  std::string name;
  std::string from;
  bool was_compared = false;  // byte for byte, by digests
};

class Rehoming {
 public:
  // `own`: servers whose records stay as they are, unless `options` names one to come from.
  Rehoming(Context& context, const Options& options, rpc::Client& client,
           std::vector<std::string> own)
      : context_(context), options_(options), client_(client), own_(std::move(own)) {}

  void Visit(const std::string& local) {
    const absl::StatusOr<std::vector<FoundRecord>> records = FindLocalRecords(local);
    if (!records.ok()) return Fail(local, records.status());
    const auto is_target = [&](const FoundRecord& found) {
      return IsSameServer(found.record.server, target());
    };
    const auto there = std::find_if(records->begin(), records->end(), is_target);
    if (there != records->end() && IsSameList(there->record.server, target())) {
      ++already_;
      return;
    }
    if (there != records->end()) return Bring(local, *there);
    for (const FoundRecord& found : *records) {
      if (!IsWanted(found.record)) {
        ++others_;
        continue;
      }
      return Bring(local, found);
    }
  }

  bool has_found_records() const { return rehomed_ + already_ + others_ + failed_ > 0; }

  int Finish() {
    std::string text = StrCat(options_.dry_run ? "would bring " : "brought ", rehomed_, " of ",
                              rehomed_ + failed_, " records to ", target());
    if (already_ > 0) StrAppend(&text, ", ", already_, " were there");
    if (others_ > 0) StrAppend(&text, ", ", others_, " are of other servers (--from takes one's)");
    if (failed_ > 0) StrAppend(&text, "; ", failed_, " stay as they are");
    context_.Say(text);
    if (context_.json()) {
      context_.Print(Json{{"files", json_},
                          {"server", target()},
                          {"dry_run", options_.dry_run},
                          {"rehomed", rehomed_},
                          {"already", already_},
                          {"other_servers", others_},
                          {"failed", failed_}});
    }
    return code_;
  }

 private:
  void Bring(const std::string& local, const FoundRecord& found) {
    const absl::StatusOr<Outcome> outcome = Rehome(local, found);
    if (!outcome.ok()) return Fail(local, outcome.status());
    Tell(*outcome);
  }

  const std::string& target() const { return client_.options().server; }

  bool IsWanted(const LocalRecord& record) const {
    if (!options_.from.empty()) return IsSameServer(record.server, options_.from);
    return std::none_of(own_.begin(), own_.end(),
                        [&](const std::string& own) { return IsSameServer(own, record.server); });
  }

  absl::StatusOr<Outcome> Rehome(const std::string& local, const FoundRecord& found) {
    const LocalRecord& record = found.record;
    H5M_ASSIGN_OR_RETURN(const auto server, FindServerFile(client_, record.name));
    if (!server.has_value() || server->file_id() != ToByteString(record.file_id)) {
      return absl::NotFoundError(
          StrCat(local, ": ", target(), " has ", server.has_value() ? "another" : "no", " file ",
                 record.name, "; h5mirror push ", local, " brings it there"));
    }
    H5M_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(local, FileLock::kShared));
    H5M_RETURN_IF_ERROR(CheckNoEdit(file));
    H5M_RETURN_IF_ERROR(CheckNoLease(local, *server));
    Outcome outcome{.local = local, .name = record.name, .from = record.server};
    v1::Version version = server->newest_version();
    if (!IsLevelWherever(file, record, *server)) {
      outcome.was_compared = true;
      H5M_ASSIGN_OR_RETURN(version, CompareWhole(local, file, record.name, *server));
    }
    if (!options_.dry_run) H5M_RETURN_IF_ERROR(Rewrite(found, file, version, *server));
    return outcome;
  }

  // Errors: kFailedPrecondition the two differ.
  absl::StatusOr<v1::Version> CompareWhole(const std::string& local, const LocalFile& file,
                                           const std::string& name, const v1::FileStatus& server) {
    LocalBlocks blocks(file.fd(), file.size_bytes(), local);
    Progress progress(context_.streams(), StrCat("comparing ", local), file.size_bytes());
    Comparison comparison(client_, name, 0, blocks, progress);
    H5M_RETURN_IF_ERROR(comparison.Coarse());
    H5M_RETURN_IF_ERROR(file.CheckUnchanged());
    const bool is_newest = comparison.version().cut() == server.last_cut();
    if (comparison.equal() && is_newest) return comparison.version();
    return absl::FailedPreconditionError(StrCat(
        local, " differs from ", name, " on ", target(), ": h5mirror resync --from local ", local,
        " takes the local one, --from remote the server's; the losing side stays a version"));
  }

  absl::Status Rewrite(const FoundRecord& found, const LocalFile& file, const v1::Version& version,
                       const v1::FileStatus& server) {
    LocalRecord record = found.record;
    record.state = RecordState::kClean;
    record.server = target();
    record.cut = server.last_cut();
    record.version = version.version();
    record.stat = file.stat();
    record.detail.clear();
    record.renamed_from.clear();
    record.pending_session_id = {};
    record.pending_seq = 0;
    record.dirty_map_id = {};
    record.since = absl::Now();
    RecordPlace place = found.place;
    if (!place.tag.empty()) place.tag = ServerTag(target());
    H5M_RETURN_IF_ERROR(WriteLocalRecord(place, record));
    RemoveDirtyMap(place);
    if (place.tag != found.place.tag) RemoveLocalRecord(found.place);
    return absl::OkStatus();
  }

  void Tell(const Outcome& outcome) {
    ++rehomed_;
    json_.push_back(Json{{"local", outcome.local},
                         {"file", outcome.name},
                         {"from", outcome.from},
                         {"action", "rehomed"},
                         {"compared", outcome.was_compared}});
    if (outcome.was_compared) context_.Say(StrCat(outcome.local, ": compared, the same"));
  }

  void Fail(const std::string& local, const absl::Status& error) {
    ++failed_;
    if (code_ == kExitOk) code_ = ExitCodeFor(error);
    context_.Note(ToStd(error.message()));
    json_.push_back(
        Json{{"local", local}, {"action", "failed"}, {"error", std::string(error.message())}});
  }

  Context& context_;
  const Options& options_;
  rpc::Client& client_;
  const std::vector<std::string> own_;
  size_t rehomed_ = 0, already_ = 0, others_ = 0, failed_ = 0;
  int code_ = kExitOk;
  Json json_ = Json::array();
};

// A directory may well have no mirrored file; a file that was named should have a record.
absl::Status CheckAnyRecord(const Rehoming& rehoming, const std::vector<std::string>& paths) {
  std::error_code ignored;
  const auto is_directory = [&](const std::string& path) {
    return std::filesystem::is_directory(path, ignored);
  };
  if (rehoming.has_found_records() || std::any_of(paths.begin(), paths.end(), is_directory)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(StrCat(paths[0], ": no record of a mirror (",
                                    (RecordDirectory(paths[0]) / "client.json").string(),
                                    "); h5mirror push ", paths[0], " mirrors the file"));
}

absl::StatusOr<int> RunRehome(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const FilesToPush found,
                       FindFilesToPush(options.paths, /*recursive=*/true, Content::kHdf5Only));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect());
  H5M_ASSIGN_OR_RETURN(std::vector<std::string> own, rpc::ConfiguredServers());
  Rehoming rehoming(context, options, *client, std::move(own));
  for (const std::string& local : found.files) rehoming.Visit(local);
  H5M_RETURN_IF_ERROR(CheckAnyRecord(rehoming, options.paths));
  return rehoming.Finish();
}

}  // namespace

void AddRehome(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("rehome", "Write the new server of moved mirrors into local records");
  verb->add_option("LOCAL", options->paths, "files, or directories with all below them")
      ->required();
  verb->add_option("--from", options->from,
                   "only records of this address (default: all records whose server your "
                   "configuration does not name)");
  verb->add_flag("--dry-run", options->dry_run, "change nothing; print the steps only");
  OnVerb(*verb, context, action, options, RunRehome);
}

}  // namespace h5mirror::tools
