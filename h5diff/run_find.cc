#include "h5diff/run_find.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/exit_code.h"
#include "cli/context/file_arg.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "cli/verbs/verb_log.h"
#include "h5diff/changed_ranges.h"
#include "h5diff/find_matches.h"
#include "h5diff/footprint.h"
#include "h5diff/version_walk.h"
#include "hdf5/source_driver.h"

namespace h5mirror::tools {
namespace {

constexpr int kFilesAtOnce = 1000;
constexpr absl::Duration kLookTime = absl::Seconds(30);

struct Wanted {
  PathGlobs globs;
  std::vector<AttributeWish> attributes;
  v1::ListVersionsRequest versions;
  bool every_version = false;
};

// A match, and the versions one after the other that have it.
struct Finding {
  Match match;
  int64_t oldest_version = 0, newest_version = 0;
};

// Looks into versions of one file, newest first. If no byte from which the last matches were read
// differs in the next version, that version has the same matches and is not opened.
class FileFinder {
 public:
  FileFinder(rpc::Client& client, std::string file, const Wanted& wanted)
      : client_(client), file_(std::move(file)), wanted_(wanted) {}

  absl::StatusOr<bool> Add(const v1::Version& version) {
    if (newer_.version() > 0) {
      H5M_ASSIGN_OR_RETURN(const bool same, IsSame(version));
      if (same) {
        for (const auto& [path, at] : current_) findings_[at].oldest_version = version.version();
        newer_ = version;
        return true;
      }
    }
    H5M_RETURN_IF_ERROR(Look(version));
    newer_ = version;
    return wanted_.every_version;
  }

  const std::vector<Finding>& findings() const { return findings_; }
  // Objects that could not be looked at, and why.
  const std::vector<std::string>& failed() const { return failed_; }

 private:
  absl::StatusOr<bool> IsSame(const v1::Version& version) {
    H5M_ASSIGN_OR_RETURN(
        const ChangedRanges ranges,
        FindChangedRanges(client_, file_, version.version(), newer_.version(), nullptr));
    if (!footprint_.Touches(ranges.changed)) return true;
    VersionPages pages(
        client_,
        {.file = file_, .versions = {version, newer_}, .page_size_bytes = ranges.page_size_bytes},
        ranges.changed);
    H5M_ASSIGN_OR_RETURN(const bool differs, footprint_.Differs(pages));
    return !differs;
  }

  absl::Status Look(const v1::Version& version) {
    VersionPages pages(client_, {.file = file_, .versions = {version, version}}, ExtentSet());
    Footprint footprint;
    const auto matches = [&]() -> absl::StatusOr<Matches> {
      H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
      H5M_ASSIGN_OR_RETURN(const hdf5::SourceFile opened,
                           hdf5::SourceFile::Open(pages.source(Side::kNew), &footprint));
      return FindMatches(opened.id(), wanted_.globs, wanted_.attributes);
    }();
    H5M_RETURN_IF_ERROR(pages.error());
    H5M_RETURN_IF_ERROR(matches.status());
    Take(matches->found, version.version());
    for (const std::string& each : matches->failed) {
      failed_.push_back(StrCat("version ", version.version(), ": ", each));
    }
    // It is not known which bytes their objects would come from.
    if (!matches->failed.empty()) footprint.SetUnbounded();
    footprint_ = std::move(footprint);
    return absl::OkStatus();
  }

  // Goes on with the findings of the newer version that this one has too.
  void Take(const std::vector<Match>& matches, int64_t version) {
    absl::flat_hash_map<std::string, size_t> current;
    for (const Match& match : matches) {
      const auto found = current_.find(match.path);
      const bool is_known =
          found != current_.end() && findings_[found->second].match.object == match.object;
      const size_t at = is_known ? found->second : findings_.size();
      if (!is_known) findings_.push_back({match, version, version});
      findings_[at].oldest_version = version;
      current[match.path] = at;
    }
    current_ = std::move(current);
  }

  rpc::Client& client_;
  const std::string file_;
  const Wanted& wanted_;
  v1::Version newer_;  // the last one that was added; number 0: none
  Footprint footprint_;
  std::vector<Finding> findings_;
  std::vector<std::string> failed_;
  // The places in `findings_` of the last version's objects, by path.
  absl::flat_hash_map<std::string, size_t> current_;
};

class Finder {
 public:
  Finder(Context& context, const Wanted& wanted)
      : context_(context),
        wanted_(wanted),
        table_(std::vector<Column>{{"FILE", Align::kLeft},
                                   {"VERSIONS", Align::kRight},
                                   {"PATH", Align::kLeft},
                                   {"OBJECT", Align::kLeft, Narrow::kClip}}) {}

  absl::Status Place(const std::string& place) {
    H5M_ASSIGN_OR_RETURN(const FileArg file, ResolveFileArg(place, context_.flags().client.server));
    H5M_ASSIGN_OR_RETURN(rpc::Client * client, context_.Connect(file));
    std::string directory = file.name;
    while (directory.ends_with('/')) directory.pop_back();
    if (directory != file.name) return Directory(*client, directory);
    v1::GetFileRequest request;
    request.set_name(file.name);
    const auto status = client->GetFile(request, kLookTime);
    if (status.ok()) return File(*client, file.name);
    if (!absl::IsNotFound(status.status()) || !file.server.empty()) return status.status();
    return Directory(*client, file.name);
  }

  absl::Status Everywhere() {
    H5M_ASSIGN_OR_RETURN(rpc::Client * client, context_.Connect());
    return Directory(*client, "");
  }

  int End(const FindOptions& options) {
    if (context_.json()) {
      context_.Print(Json{{"glob", options.glob}, {"found", found_}, {"failed", failed_}});
    } else if (!has_found_ && !wanted_.every_version) {
      // An object that was deleted is a frequent one to look for.
      context_.Note(StrCat(options.glob, ": no match in any newest version",
                           options.at.empty() ? "" : " of that time",
                           "; --every-version looks into the older ones too"));
    }
    return failed_.empty() ? kExitOk : kExitFailure;
  }

 private:
  absl::Status Directory(rpc::Client& client, const std::string& directory) {
    v1::ListFilesRequest request;
    request.set_directory(directory);
    request.set_page_size(kFilesAtOnce);
    do {
      H5M_ASSIGN_OR_RETURN(const v1::ListFilesResponse page, client.ListFiles(request));
      for (const v1::FileSummary& file : page.files()) {
        H5M_RETURN_IF_ERROR(File(client, file.name()));
      }
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return absl::OkStatus();
  }

  // Errors: only those that end the whole run.
  absl::Status File(rpc::Client& client, const std::string& name) {
    FileFinder finder(client, name, wanted_);
    v1::ListVersionsRequest request = wanted_.versions;
    request.set_name(name);
    const absl::Status done = ForEachVersion(client, request, [&](const v1::Version& version) {
                                return finder.Add(version);
                              }).status();
    Tell(name, finder.findings());
    for (const std::string& each : finder.failed()) AddFailed(name, each);
    // There was no such file yet at that time, or it has no version.
    if (done.ok() || absl::IsNotFound(done)) return absl::OkStatus();
    if (absl::IsUnavailable(done) || absl::IsDeadlineExceeded(done)) return done;
    AddFailed(name, std::string(ToStd(done.message())));
    return absl::OkStatus();
  }

  void AddFailed(const std::string& file, const std::string& error) {
    failed_.push_back(Json{{"file", file}, {"error", error}});
    context_.Note(StrCat(file, ": ", error));
  }

  void Tell(const std::string& file, const std::vector<Finding>& findings) {
    has_found_ = has_found_ || !findings.empty();
    for (const Finding& each : findings) {
      if (context_.json()) {
        found_.push_back(Json{{"file", file},
                              {"path", each.match.path},
                              {"object", each.match.object},
                              {"oldest_version", each.oldest_version},
                              {"newest_version", each.newest_version}});
        continue;
      }
      const bool is_one = each.oldest_version == each.newest_version;
      table_.AddRow({file,
                     is_one ? StrCat(each.newest_version)
                            : StrCat(each.oldest_version, "-", each.newest_version),
                     each.match.path, each.match.object});
    }
    if (!table_.empty()) context_.Print(table_);
  }

  Context& context_;
  const Wanted& wanted_;
  Table table_;
  Json found_ = Json::array();
  Json failed_ = Json::array();
  bool has_found_ = false;
};

}  // namespace

absl::StatusOr<int> RunFind(Context& context, const FindOptions& options) {
  Wanted wanted;
  wanted.every_version = options.every_version;
  H5M_ASSIGN_OR_RETURN(wanted.globs, PathGlobs::Parse({options.glob}));
  for (const std::string& text : options.attributes) {
    H5M_ASSIGN_OR_RETURN(AttributeWish wish, ParseAttributeWish(text));
    wanted.attributes.push_back(std::move(wish));
  }
  H5M_ASSIGN_OR_RETURN(wanted.versions, VersionsRequest(context, "", options.at));
  if (!wanted.every_version) wanted.versions.set_page_size(1);  // FileFinder takes no second one.
  Finder finder(context, wanted);
  if (options.places.empty()) H5M_RETURN_IF_ERROR(finder.Everywhere());
  for (const std::string& place : options.places) H5M_RETURN_IF_ERROR(finder.Place(place));
  return finder.End(options);
}

}  // namespace h5mirror::tools
