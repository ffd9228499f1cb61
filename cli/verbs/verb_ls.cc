// h5mirror ls: the files under a server's root.
#include <algorithm>
#include <memory>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "cli/verbs/cells_below.h"
#include "cli/verbs/verbs.h"
#include "rpc/mirror_state_name.h"

namespace h5mirror::tools {
namespace {

constexpr int64_t kPageMax = 10000;    // the protocol's own limit
constexpr int64_t kLongPageMax = 200;  // with -l each file is a call: show them as they come

struct Options {
  std::string directory;
  bool long_form = false;
  bool removed = false;
  std::vector<v1::MirrorState> states;  // empty: all files
  int64_t limit = 0;                    // 0: all
};

absl::StatusOr<v1::FileStatus> GetStatus(rpc::Client& client, const std::string& name) {
  v1::GetFileRequest request;
  request.set_name(name);
  return client.GetFile(request, absl::Seconds(30));
}

std::vector<Column> ColumnsFor(const Options& options) {
  if (options.long_form) {
    return {{"SIZE", Align::kRight},
            {"VERSIONS", Align::kRight},
            {"NEWEST", Align::kLeft},
            {"WRITER", Align::kLeft, Narrow::kLeaveOut},
            {"NAME", Align::kLeft}};
  }
  if (!options.states.empty()) {
    return {{"STATE", Align::kLeft},
            {"SINCE", Align::kLeft},
            {"DETAIL", Align::kLeft, Narrow::kLeaveOut},
            {"NAME", Align::kLeft}};
  }
  return {{"SIZE", Align::kRight}, {"MODIFIED", Align::kLeft}, {"NAME", Align::kLeft}};
}

constexpr v1::MirrorState kStates[] = {v1::MIRROR_STATE_CONNECTED, v1::MIRROR_STATE_DEGRADED,
                                       v1::MIRROR_STATE_RESYNCING, v1::MIRROR_STATE_IN_SYNC,
                                       v1::MIRROR_STATE_DIVERGED};

// As on the command line, where a space would want quotes.
std::string OptionNameOf(v1::MirrorState state) {
  return absl::StrReplaceAll(rpc::MirrorStateName(state), {{" ", "-"}});
}

// "degraded,diverged", or "any". Throws what CLI11 wants.
std::vector<v1::MirrorState> ParseStates(const std::string& text) {
  std::vector<v1::MirrorState> states;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const size_t before = states.size();
    for (const v1::MirrorState state : kStates) {
      if (word == "any" || word == OptionNameOf(state)) states.push_back(state);
    }
    if (states.size() == before) {
      throw CLI::ValidationError(
          "--state", StrCat("\"", ToStd(word), "\" is no state: connected, degraded, resyncing, ",
                            "in-sync, diverged, or any"));
    }
  }
  return states;
}

// Prints pages as they arrive, so that 100,000 files need no memory and start at once.
class Lister {
 public:
  Lister(Context& context, const Options& options)
      : context_(context),
        options_(options),
        door_(context),
        table_(ColumnsFor(options)),
        left_(options.limit > 0 ? options.limit : INT64_MAX) {}

  // Each of `places` by its server. Where there are several, one that does not answer is told, and
  // the others are listed all the same.
  absl::StatusOr<int> Run(const std::vector<ServedDirectory>& places) {
    for (const ServedDirectory& place : places) {
      const absl::Status listed = ListAt(place);
      if (listed.ok()) continue;
      // The user did not name this cell, and it has no file for this caller: skip it.
      if (absl::IsNotFound(listed) && place.directory != options_.directory) continue;
      if (places.size() == 1) return NameCell(place, listed);
      if (!IsAway(listed)) return listed;
      // A call that hangs would hang again.
      if (absl::IsDeadlineExceeded(listed)) door_.NoteLost(place, listed);
      context_.Note(
          StrCat(place.directory, ": its files are missing here: ", ToStd(listed.message())));
      missing_.push_back(place.directory);
    }
    if (context_.json()) {
      Json list = {{"files", files_}, {"complete", !has_more_ && missing_.empty()}};
      if (places.size() > 1) list["missing"] = missing_;
      context_.Print(list);
    } else if (has_more_) {
      context_.Note(StrCat("there are more files; -n ", options_.limit, " ended the list"));
    }
    return CodeAtTheEnd();
  }

 private:
  absl::Status ListAt(const ServedDirectory& place) {
    if (left_ == 0 && has_more_) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(client_, door_.Connect(place));
    v1::ListFilesRequest request;
    request.set_directory(place.directory);
    request.set_details(options_.long_form && context_.json());
    for (const v1::MirrorState state : options_.states) request.add_states(state);
    if (left_ == 0) return LookForMore(std::move(request));
    do {
      const int64_t page_max = options_.long_form ? kLongPageMax : kPageMax;
      request.set_page_size(static_cast<int32_t>(std::min(left_, page_max)));
      H5M_ASSIGN_OR_RETURN(const v1::ListFilesResponse page, client_->ListFiles(request));
      for (const v1::FileSummary& file : page.files()) H5M_RETURN_IF_ERROR(Add(file));
      if (!context_.json()) context_.Print(table_);
      left_ -= page.files_size();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() && left_ > 0);
    has_more_ = has_more_ || !request.page_token().empty();
    return absl::OkStatus();
  }

  // Behind the limit: whether there is a file that is not listed.
  absl::Status LookForMore(v1::ListFilesRequest request) {
    request.set_page_size(1);
    do {
      H5M_ASSIGN_OR_RETURN(const v1::ListFilesResponse page, client_->ListFiles(request));
      has_more_ = page.files_size() > 0;
      request.set_page_token(page.next_page_token());
    } while (!has_more_ && !request.page_token().empty());
    return absl::OkStatus();
  }

  absl::Status Add(const v1::FileSummary& file) {
    if (options_.long_form) return AddLong(file);
    if (context_.json()) {
      files_.push_back(SummaryToJson(file));
    } else if (file.has_mirror()) {
      table_.AddRow({rpc::MirrorStateName(file.mirror().state()),
                     LocalTime(FromProto(file.mirror().since_time()), context_.streams().zone),
                     file.mirror().detail(), file.name()});
    } else {
      table_.AddRow({HumanBytes(static_cast<uint64_t>(file.size_bytes())),
                     LocalTime(FromProto(file.modify_time()), context_.streams().zone),
                     file.name()});
    }
    return absl::OkStatus();
  }

  absl::Status AddLong(const v1::FileSummary& file) {
    absl::StatusOr<v1::FileStatus> status = GetStatus(*client_, file.name());
    if (absl::IsNotFound(status.status())) return absl::OkStatus();  // Gone since it was listed.
    if (absl::IsDataLoss(status.status())) return AddDamaged(file, status.status());
    H5M_RETURN_IF_ERROR(status.status());
    if (context_.json()) {
      Json entry = SummaryToJson(file);
      entry.update(StatusToJson(*status));
      files_.push_back(std::move(entry));
      return absl::OkStatus();
    }
    const v1::Version& newest = status->newest_version();
    table_.AddRow(
        {HumanBytes(static_cast<uint64_t>(status->size_bytes())), StrCat(status->version_count()),
         LocalTime(FromProto(newest.server_time()), context_.streams().zone),
         status->has_lease()
             ? StrCat(status->lease().writer().program(), "@", status->lease().writer().host())
             : "-",
         file.name()});
    return absl::OkStatus();
  }

  // The damage of one file hides no other.
  absl::Status AddDamaged(const v1::FileSummary& file, const absl::Status& damage) {
    is_damaged_ = true;
    context_.Note(StrCat(file.name(), ": ", ToStd(damage.message())));
    if (context_.json()) {
      Json entry = SummaryToJson(file);
      entry["damage"] = ToStd(damage.message());
      files_.push_back(std::move(entry));
    } else {
      table_.AddRow(
          {HumanBytes(static_cast<uint64_t>(file.size_bytes())), "damaged", "-", "-", file.name()});
    }
    return absl::OkStatus();
  }

  int CodeAtTheEnd() const {
    if (!missing_.empty()) return kExitUnreachable;
    return is_damaged_ ? kExitDataLoss : kExitOk;
  }

  Context& context_;
  const Options& options_;
  ClusterDoor door_;
  Table table_;
  int64_t left_;
  rpc::Client* client_ = nullptr;  // of the server that is asked now
  bool has_more_ = false;
  bool is_damaged_ = false;           // one of the files of -l
  std::vector<std::string> missing_;  // directories
  Json files_ = Json::array();
};

}  // namespace

void AddLs(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("ls", "List the files under the server's root");
  verb->add_option("DIR", options->directory, "directory under the root (default: the root)");
  CLI::Option* long_form =
      verb->add_flag("-l,--long", options->long_form, "with versions and writers; one call a file");
  verb->add_flag("--removed", options->removed, "files that `undelete` brings back")
      ->excludes(long_form);
  verb->add_option_function<std::string>(
          "--state", [options](const std::string& text) { options->states = ParseStates(text); },
          "only files whose mirror is in one of these states, such as degraded,diverged; any: in "
          "any of them; a file that is on the server only has no state")
      ->type_name("STATE,...")
      ->excludes(long_form)
      ->excludes("--removed");
  verb->add_option("-n,--limit", options->limit, "at most this many files (default: all)")
      ->check(WholeNumber(1));
  verb->callback([&context, &action, options] {
    action = [&context, options]() -> absl::StatusOr<int> {
      if (options->removed) {
        H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect());
        return ListRemoved(context, *client, options->limit);
      }
      H5M_ASSIGN_OR_RETURN(const auto places, CellsBelow(context, options->directory));
      return Lister(context, *options).Run(places);
    };
  });
}

}  // namespace h5mirror::tools
