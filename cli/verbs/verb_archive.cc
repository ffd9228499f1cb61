// h5mirror archive: moves old versions of files to the server's archive, now.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/verbs/verbs.h"
#include "rpc/archive_calls.h"

namespace h5mirror::tools {
namespace {

constexpr int32_t kPageMax = 1000;

struct Options {
  std::string file;
  bool all = false;
  std::string older_than;
  std::string keep = "0";
};

std::string Bytes(int64_t count) { return HumanBytes(static_cast<uint64_t>(count)); }

std::string Segments(int64_t count) { return StrCat(count, count == 1 ? " segment" : " segments"); }

std::string TextOf(const v1::ArchiveHistoryResponse& done) {
  std::string text;
  if (done.segments_archived() > 0) {
    text =
        StrCat("archived ", Segments(done.segments_archived()), ", ", Bytes(done.archived_bytes()));
  } else {
    text = "nothing new to archive";
  }
  if (done.freed_bytes() > 0) StrAppend(&text, "; ", Bytes(done.freed_bytes()), " given back");
  if (done.objects_deleted() > 0) {
    StrAppend(&text, "; ", done.objects_deleted(), " objects of pruned versions deleted");
  }
  if (!done.left().empty()) StrAppend(&text, "; ", done.left());
  return text;
}

Json ToJson(const std::string& file, const v1::ArchiveHistoryResponse& done) {
  return Json{{"file", file},
              {"segments_archived", done.segments_archived()},
              {"archived_bytes", done.archived_bytes()},
              {"freed_bytes", done.freed_bytes()},
              {"objects_deleted", done.objects_deleted()},
              {"left", done.left()}};
}

absl::StatusOr<v1::ArchiveHistoryResponse> ArchiveOne(Context& context,
                                                      const rpc::ClientOptions& server,
                                                      const std::string& name,
                                                      uint64_t keep_bytes) {
  v1::ArchiveHistoryRequest request;
  request.set_name(name);
  request.set_keep_bytes(static_cast<int64_t>(keep_bytes));
  v1::ArchiveHistoryResponse last;
  Progress progress(context.streams(), StrCat("archive ", name), 0, "segments");
  const auto sink = [&](const v1::ArchiveHistoryResponse& message) {
    progress.set_total_bytes(static_cast<uint64_t>(message.segments_to_archive()));
    progress.Update(static_cast<uint64_t>(message.segments_archived()));
    last = message;
    return absl::OkStatus();
  };
  const absl::Status status = rpc::ArchiveHistory(server, request, sink);
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(
        StrCat(server.server, ": this h5mirrord is older than archives"));
  }
  if (!status.ok()) return status;
  return last;
}

// The files that --all means.
class AllFiles {
 public:
  AllFiles(rpc::Client& client, std::optional<absl::Duration> older_than)
      : client_(client), before_(older_than ? absl::Now() - *older_than : absl::InfiniteFuture()) {}

  // Empty: there are no more.
  absl::StatusOr<std::vector<std::string>> Next() {
    std::vector<std::string> names;
    while (names.empty() && !is_done_) {
      request_.set_page_size(kPageMax);
      H5M_ASSIGN_OR_RETURN(const v1::ListFilesResponse page, client_.ListFiles(request_));
      for (const v1::FileSummary& file : page.files()) {
        if (FromProto(file.modify_time()) <= before_) names.push_back(file.name());
      }
      request_.set_page_token(page.next_page_token());
      is_done_ = page.next_page_token().empty();
    }
    return names;
  }

 private:
  rpc::Client& client_;
  const absl::Time before_;
  v1::ListFilesRequest request_;
  bool is_done_ = false;
};

// Whether all further files would fail in the same way.
bool EndsAll(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsUnauthenticated(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status);
}

// Sums up the results of the files of --all.
class Summary {
 public:
  explicit Summary(Context& context) : context_(context) {}

  void Add(const std::string& name, const v1::ArchiveHistoryResponse& done) {
    ++files_;
    archived_bytes_ += done.archived_bytes();
    freed_bytes_ += done.freed_bytes();
    json_.push_back(ToJson(name, done));
    const bool is_told = done.segments_archived() > 0 || done.freed_bytes() > 0 ||
                         done.objects_deleted() > 0 || !done.left().empty();
    if (is_told) context_.Say(StrCat(name, ": ", TextOf(done)));
  }
  void Add(const std::string& name, const absl::Status& failed) {
    if (code_ == kExitOk) code_ = ExitCodeFor(failed);
    context_.Note(ToStd(failed.message()));
    json_.push_back(Json{{"file", name}, {"error", std::string(failed.message())}});
  }
  int Finish() {
    if (context_.json()) context_.Print(Json{{"files", std::move(json_)}});
    context_.Say(StrCat(files_, files_ == 1 ? " file: " : " files: ", Bytes(archived_bytes_),
                        " archived, ", Bytes(freed_bytes_), " given back"));
    return code_;
  }

 private:
  Context& context_;
  Json json_ = Json::array();
  int code_ = kExitOk;
  int64_t files_ = 0;
  int64_t archived_bytes_ = 0;
  int64_t freed_bytes_ = 0;
};

absl::StatusOr<int> RunAll(Context& context, std::optional<absl::Duration> older_than,
                           uint64_t keep_bytes) {
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect());
  AllFiles files(*client, older_than);
  Summary summary(context);
  for (;;) {
    H5M_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.Next());
    if (names.empty()) return summary.Finish();
    for (const std::string& name : names) {
      const auto done = ArchiveOne(context, client->options(), name, keep_bytes);
      if (done.ok()) {
        summary.Add(name, *done);
      } else if (!absl::IsNotFound(done.status())) {  // Removed meanwhile, or without a version.
        summary.Add(name, done.status());
        if (EndsAll(done.status())) return summary.Finish();
      }
    }
  }
}

absl::StatusOr<int> RunArchive(Context& context, const Options& options) {
  if (options.file.empty() != options.all) {
    return absl::InvalidArgumentError("name a FILE, or --all");
  }
  if (!options.older_than.empty() && !options.all) {
    return absl::InvalidArgumentError("--older-than chooses among the files of --all");
  }
  const auto keep = ParseBytes(options.keep);
  if (!keep.ok() || *keep > uint64_t{1} << 60) {
    return absl::InvalidArgumentError(
        StrCat("--keep: '", options.keep, "' is no size, as in 10GiB"));
  }
  std::optional<absl::Duration> older_than;
  if (!options.older_than.empty()) {
    const auto age = ParseLongDuration(options.older_than);
    if (!age.ok()) {
      return absl::InvalidArgumentError(
          StrCat("--older-than: '", options.older_than, "' is no time, as in 30d"));
    }
    older_than = *age;
  }
  if (options.all) return RunAll(context, older_than, *keep);
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  H5M_ASSIGN_OR_RETURN(const v1::ArchiveHistoryResponse done,
                       ArchiveOne(context, file.client->options(), file.name, *keep));
  if (context.json()) context.Print(ToJson(file.name, done));
  context.Say(StrCat(file.name, ": ", TextOf(done)));
  return kExitOk;
}

}  // namespace

void AddArchive(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "archive", "Move saved pages of old versions to the server's archive, now");
  verb->add_option("FILE", options->file, kFileHelp);
  verb->add_flag("--all", options->all, "all files of the server, one after the other");
  verb->add_option("--older-than", options->older_than,
                   "with --all: only files that have not changed for this long, as in 30d")
      ->type_name("TIME");
  verb->add_option("--keep", options->keep,
                   "so much archived history of the file, the newest, stays on the disk too")
      ->type_name("SIZE")
      ->capture_default_str();
  OnVerb(*verb, context, action, options, RunArchive);
}

}  // namespace h5mirror::tools
