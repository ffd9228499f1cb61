#include "server/restore_root_verb.h"

#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "archive/archive_url.h"
#include "archive/directory_store.h"
#include "archive/root_archive.h"
#include "archive/s3_store.h"
#include "base/glob.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "onion_store/restore_root.h"
#include "server/open_archive.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr absl::Duration kTellEvery = absl::Seconds(2);
// After the former server has noticed, a call of it may be under way.
constexpr absl::Duration kLastCalls = absl::Seconds(30);

// What became of a file.
struct Outcome {
  store::RestorableFile file;
  std::string prefix;  // of its name, for people: "CELL/", or empty
  std::string state;   // "listed", "restored", "there", "no copy", "damaged", "failed"
  std::string error;
};

std::string IsoTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

// Tells on standard error how far it is, now and then.
class Progress {
 public:
  explicit Progress(size_t files) : files_(files) {}
  void Ended() { ++done_; }
  absl::Status Came(uint64_t bytes) {
    bytes_ += bytes;
    if (absl::Now() < next_) return absl::OkStatus();
    next_ = absl::Now() + kTellEvery;
    std::cerr << "h5mirrord: " << done_ << " of " << files_ << " files, " << HumanBytes(bytes_)
              << " read\n";
    return absl::OkStatus();
  }

 private:
  const size_t files_;
  size_t done_ = 0;
  uint64_t bytes_ = 0;
  absl::Time next_ = absl::Now() + kTellEvery;
};

// Empty: nobody knows it.
std::string NameOf(const Outcome& outcome) {
  return outcome.file.name.empty() ? "" : outcome.prefix + outcome.file.name;
}

Json ToJson(const Outcome& outcome) {
  const store::RestorableFile& file = outcome.file;
  Json json = {{"name", NameOf(outcome)},
               {"file_id", HexOf(file.file_id)},
               {"state", outcome.state},
               {"error", outcome.error}};
  if (!file.status.ok()) return json;
  json.update({{"version", file.version},
               {"versions", file.versions},
               {"version_time", IsoTime(file.version_time)},
               {"copied_time", IsoTime(file.time)},
               {"size_bytes", file.size_bytes},
               {"copy_bytes", file.copy_bytes}});
  return json;
}

void Print(const RestoreRootRequest& request, const std::vector<Outcome>& outcomes, bool is_done) {
  if (request.json) {
    Json files = Json::array();
    for (const Outcome& outcome : outcomes) files.push_back(ToJson(outcome));
    std::cout << Json{{"archive", request.archive},
                      {"root", request.root.string()},
                      {"done", is_done},
                      {"files", std::move(files)}}
                     .dump(2, ' ', false, Json::error_handler_t::replace)
              << "\n";
    return;
  }
  for (const Outcome& outcome : outcomes) {
    const store::RestorableFile& file = outcome.file;
    const std::string name =
        file.name.empty() ? StrCat("file ", outcome.prefix, HexOf(file.file_id)) : NameOf(outcome);
    std::cout << Printable(name);
    if (file.status.ok()) {
      std::cout << "@" << file.version << "  of " << IsoTime(file.version_time) << "  copied "
                << IsoTime(file.time) << "  " << HumanBytes(file.size_bytes);
    }
    std::cout << "  " << outcome.state;
    if (!outcome.error.empty()) std::cout << ": " << Printable(outcome.error);
    std::cout << "\n";
  }
}

ExitCode Fail(const absl::Status& status, ExitCode code) {
  std::cerr << "h5mirrord: " << Printable(ToStd(status.message())) << "\n";
  return code;
}

ExitCode CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return ExitCode::kNoRoot;
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kRootReadOnly;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kRootInUse;
    default:
      return ExitCode::kFailed;
  }
}

// Of the archive or the disk, and not of one file: others fare no better.
bool ConcernsAll(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

// One root to be: all of the archive, or of an archive of a cluster what one cell has.
class Part {
 public:
  // `prefix`: of the names of its files, for people: "CELL/".
  Part(const RestoreRootRequest& request, std::unique_ptr<store::ObjectStore> archive,
       std::filesystem::path root, std::string prefix)
      : request_(request),
        archive_owned_(std::move(archive)),
        archive_(*archive_owned_),
        root_(std::move(root)),
        prefix_(std::move(prefix)),
        env_(Env::Posix()) {}

  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  size_t Count(std::string_view state) const {
    size_t count = 0;
    for (const Outcome& outcome : outcomes_) count += outcome.state == state ? 1 : 0;
    return count;
  }
  // Whose the archive is. An earlier run may have begun to take it over.
  absl::Status FindOwner() {
    const auto kept = KeptArchive(env_, root_);
    if (kept.ok()) {
      kept_ = kept->substr(0, kept->find(' '));
      is_taken_ = !kept_.empty() && kept_ == *kept;
    }
    const auto owner = archive::ReadArchiveOwner(archive_, kCallTimeout);
    if (owner.ok()) {
      owner_ = *owner;
      begin_id_ = owner_ == kept_ ? "" : owner_;
      return absl::OkStatus();
    }
    if (!absl::IsNotFound(owner.status())) return owner.status();
    if (!kept_.empty()) return absl::OkStatus();  // A crash while it was taken over.
    return absl::NotFoundError(StrCat(archive_.Describe(),
                                      " is no archive of a root: it lacks the ", "object \"",
                                      archive::RootArchive::kOwnerObject, "\""));
  }

  // Makes the root, or goes on with that of an earlier run.
  ExitCode Begin() {
    // The directory of a cell need not be there.
    if (!prefix_.empty()) {
      std::error_code error;
      std::filesystem::create_directories(root_, error);
    }
    auto restore = store::RootRestore::Begin(env_, root_, begin_id_);
    if (!restore.ok()) return Fail(restore.status(), CodeOf(restore.status()));
    restore_ = *std::move(restore);
    if (request_.takes_over || kept_.empty()) return ExitCode::kOk;
    return Fail(absl::FailedPreconditionError(
                    "an earlier run had --take-over: go on with it, or begin in another directory"),
                ExitCode::kUsage);
  }

  // Once a server of the former root has noticed, it makes no call, so that nothing of what is
  // restored goes meanwhile. `must_wait`: until then.
  absl::Status BeginTakeOver(bool* must_wait) {
    if (is_taken_ && owner_ == kept_) return absl::OkStatus();
    if (kept_.empty()) kept_ = HexOf(RandomBytes16());
    H5M_RETURN_IF_ERROR(KeepArchive(env_, root_, StrCat(kept_, " new")));
    if (owner_ != kept_) {
      H5M_RETURN_IF_ERROR(archive::ReplaceArchiveOwner(archive_, kept_, kCallTimeout));
    }
    is_taken_ = false;
    owner_ = kept_;
    // A directory is looked at before each call. An earlier run may have been killed meanwhile.
    *must_wait |= request_.archive.starts_with("s3:");
    return absl::OkStatus();
  }
  absl::Status EndTakeOver() {
    return std::exchange(is_taken_, true) ? absl::OkStatus() : KeepArchive(env_, root_, kept_);
  }

  // The files that the request names.
  absl::Status Find() {
    outcomes_.clear();
    H5M_ASSIGN_OR_RETURN(auto files, store::ListRestorable(archive_));
    size_t nameless = 0;
    for (store::RestorableFile& file : files) {
      if (!request_.files.empty() && file.name.empty()) ++nameless;
      const std::string outer = file.name.empty() ? "" : prefix_ + file.name;
      if (!request_.files.empty() && !AnyGlobMatches(request_.files, outer)) continue;
      Outcome outcome{std::move(file), prefix_, "listed", ""};
      if (!outcome.file.status.ok()) SetFailed(outcome.file.status, &outcome);
      outcomes_.push_back(std::move(outcome));
    }
    if (nameless > 0) {
      std::cerr
          << "h5mirrord: --files leaves out files whose names are unknown, as they have no whole "
             "copy: "
          << nameless << "\n";
    }
    return absl::OkStatus();
  }

  // Rebuilds what was found. False: others fare no better.
  bool RestoreAll(Progress& progress) {
    store::RestoreOptions options;
    options.keep_archived = request_.takes_over;
    options.umask_bits = request_.umask_bits;
    options.on_bytes = [&](uint64_t bytes) { return progress.Came(bytes); };
    for (Outcome& outcome : outcomes_) {
      if (outcome.state == "listed" && ConcernsAll(RestoreOne(options, &outcome))) return false;
      progress.Ended();
    }
    return true;
  }
  // Whether there is something to restore. Else no root is made, as of a cell without a copy.
  bool IsWanted() const { return restore_ != nullptr || Count("listed") > 0; }
  // Whether all is there that the request wants.
  bool IsWhole() const {
    const size_t come = Count("restored") + Count("there");
    const size_t left_out = request_.skips_damaged ? Count("damaged") + Count("no copy") : 0;
    return come + left_out == outcomes_.size();
  }
  absl::Status End() { return restore_->End(); }

 private:
  static void SetFailed(const absl::Status& status, Outcome* outcome) {
    const bool is_of_file = absl::IsDataLoss(status) || absl::IsAlreadyExists(status);
    outcome->state = is_of_file ? "damaged" : "failed";
    if (absl::IsNotFound(outcome->file.status)) outcome->state = "no copy";
    outcome->error = ToStd(status.message());
  }

  absl::Status RestoreOne(const store::RestoreOptions& options, Outcome* outcome) {
    const auto restored = restore_->Restore(archive_, options, &outcome->file);
    if (!restored.ok()) {
      SetFailed(restored.status(), outcome);
      std::cerr << "h5mirrord: " << Printable(prefix_ + outcome->file.name) << ": "
                << Printable(outcome->error) << "\n";
    } else {
      outcome->state = *restored ? "restored" : "there";
    }
    return restored.status();
  }

  const RestoreRootRequest& request_;
  const std::unique_ptr<store::ObjectStore> archive_owned_;
  store::ObjectStore& archive_;
  const std::filesystem::path root_;
  const std::string prefix_;
  Env& env_;
  std::unique_ptr<store::RootRestore> restore_;  // after Begin()
  std::vector<Outcome> outcomes_;                // of Find()
  std::string owner_;                            // of the archive; empty: it has none now
  std::string kept_;                             // the id that an earlier run chose to take it over
  bool is_taken_ = false;                        // that run has waited, too
  std::string begin_id_;                         // of RootRestore::Begin()
};

absl::StatusOr<std::unique_ptr<store::ObjectStore>> OpenPart(const std::string& url_text,
                                                             const std::string& part) {
  H5M_ASSIGN_OR_RETURN(archive::ArchiveUrl url, archive::ParseArchiveUrl(url_text));
  if (url.directory.empty()) {
    url.s3.prefix += StrCat(url.s3.prefix.empty() ? "" : "/", part);
    return archive::S3Store::Open(std::move(url.s3));
  }
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(url.directory));
  return std::make_unique<archive::DirectoryStore>(std::move(tree), part,
                                                   StrCat(url.directory, "/", part));
}

// The cells of an archive of a cluster; none: it is that of one root. Goes over all its objects.
absl::StatusOr<std::set<std::string>> ListCells(store::ObjectStore& archive) {
  std::set<std::string> cells;
  std::string next;
  do {
    H5M_ASSIGN_OR_RETURN(const store::ObjectPage page,
                         archive.List(kCellParts, next, store::kObjectListMax, kCallTimeout));
    for (const store::ObjectInfo& object : page.objects) {
      const auto cell = CellOfObject(object.name);
      if (cell) cells.insert(*cell);
    }
    next = page.next;
  } while (!next.empty());
  return cells;
}

// One run of the command.
class Run {
 public:
  explicit Run(const RestoreRootRequest& request) : request_(request) {}

  ExitCode Do(std::unique_ptr<store::ObjectStore> archive) {
    where_ = archive->Describe();
    const absl::Status opened = OpenParts(std::move(archive));
    if (!opened.ok()) return Fail(opened, ExitCode::kFailed);
    for (Part& part : parts_) {
      const absl::Status known = part.FindOwner();
      if (!known.ok()) return Fail(known, ExitCode::kFailed);
    }
    // An archive that has nothing to restore is not taken over, and no root is ended for it.
    if (const absl::Status found = Find(); !found.ok()) return Fail(found, ExitCode::kFailed);
    if (Count("listed") == 0) return FailWithout();
    if (request_.is_dry_run) {
      Print(request_, Outcomes(), false);
      return Count("listed") == FileCount() ? ExitCode::kOk : ExitCode::kFailed;
    }
    for (Part& part : parts_) {
      if (!part.IsWanted()) continue;
      if (const ExitCode begun = part.Begin(); begun != ExitCode::kOk) return begun;
    }
    if (request_.takes_over) {
      if (const absl::Status taken = TakeOver(); !taken.ok()) return Fail(taken, ExitCode::kFailed);
      // Until it was taken over, a server of the former root may have replaced copies.
      if (const absl::Status found = Find(); !found.ok()) return Fail(found, ExitCode::kFailed);
    }
    return RestoreAll();
  }

 private:
  absl::Status OpenParts(std::unique_ptr<store::ObjectStore> archive) {
    if (request_.cell) {
      H5M_ASSIGN_OR_RETURN(auto part, OpenPart(request_.archive, PartOfCell(*request_.cell)));
      parts_.emplace_back(request_, std::move(part), request_.root, "");
      return absl::OkStatus();
    }
    const auto owner = archive::ReadArchiveOwner(*archive, kCallTimeout);
    if (absl::IsNotFound(owner.status())) {
      H5M_ASSIGN_OR_RETURN(const std::set<std::string> cells, ListCells(*archive));
      for (const std::string& cell : cells) {
        H5M_ASSIGN_OR_RETURN(auto part, OpenPart(request_.archive, PartOfCell(cell)));
        parts_.emplace_back(request_, std::move(part), request_.root / cell,
                            cell.empty() ? "" : StrCat(cell, "/"));
      }
    }
    if (parts_.empty()) parts_.emplace_back(request_, std::move(archive), request_.root, "");
    return absl::OkStatus();
  }

  absl::Status Find() {
    for (Part& part : parts_) H5M_RETURN_IF_ERROR(part.Find());
    return absl::OkStatus();
  }

  size_t Count(std::string_view state) const {
    size_t count = 0;
    for (const Part& part : parts_) count += part.Count(state);
    return count;
  }
  std::vector<Outcome> Outcomes() const {
    std::vector<Outcome> all;
    for (const Part& part : parts_) {
      all.insert(all.end(), part.outcomes().begin(), part.outcomes().end());
    }
    return all;
  }
  size_t FileCount() const {
    size_t count = 0;
    for (const Part& part : parts_) count += part.outcomes().size();
    return count;
  }

  ExitCode FailWithout() {
    Print(request_, Outcomes(), false);
    const char* const why = request_.files.empty()
                                ? " has no copy of a file that can be restored: was "
                                  "`archive_heads` true in the lost server?"
                                : " has no copy of a file that --files names";
    return Fail(absl::NotFoundError(StrCat(where_, why)), ExitCode::kFailed);
  }

  absl::Status TakeOver() {
    bool must_wait = false;
    for (Part& part : parts_) {
      if (part.IsWanted()) H5M_RETURN_IF_ERROR(part.BeginTakeOver(&must_wait));
    }
    if (must_wait) {
      const absl::Duration wait = archive::RootArchive::kOwnerCheckEvery + kLastCalls;
      std::cerr << "h5mirrord: waits " << HumanDuration(wait)
                << ", until a server of the former root has noticed\n";
      absl::SleepFor(wait);
    }
    for (Part& part : parts_) {
      if (part.IsWanted()) H5M_RETURN_IF_ERROR(part.EndTakeOver());
    }
    return absl::OkStatus();
  }

  ExitCode RestoreAll() {
    Progress progress(FileCount());
    for (Part& part : parts_) {
      if (!part.RestoreAll(progress)) break;
    }
    const bool is_whole =
        std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.IsWhole(); });
    // Not before: a root that was ended is not gone on with.
    absl::Status ended;
    for (Part& part : parts_) {
      if (is_whole && part.IsWanted()) ended.Update(part.End());
    }
    Print(request_, Outcomes(), is_whole && ended.ok());
    if (!ended.ok()) return Fail(ended, ExitCode::kFailed);
    if (is_whole) return TellSettings();
    std::cerr << "h5mirrord: the root is not whole, and no server serves it: run the command again";
    const size_t damaged = Count("damaged") + Count("no copy");
    if (damaged > 0) std::cerr << ", with --skip-damaged to leave " << damaged << " out";
    std::cerr << "\n";
    return ExitCode::kFailed;
  }

  // A server without the key would delete all copies.
  ExitCode TellSettings() {
    if (request_.takes_over) {
      std::cerr << "h5mirrord: before the server starts, set in its configuration:\n"
                << "  archive = \"" << Printable(request_.archive) << "\"\n"
                << "  archive_heads = true\n";
    }
    return ExitCode::kOk;
  }

  const RestoreRootRequest& request_;
  std::string where_;  // of the archive
  std::deque<Part> parts_;
};

}  // namespace

ExitCode RestoreRoot(const RestoreRootRequest& request) {
  auto archive = archive::OpenArchive(Env::Posix(), request.archive);
  if (!archive.ok()) {
    return Fail(absl::Status(archive.status().code(),
                             StrCat("--archive: ", ToStd(archive.status().message()))),
                absl::IsInvalidArgument(archive.status()) ? ExitCode::kUsage : ExitCode::kFailed);
  }
  return Run(request).Do(*std::move(archive));
}

}  // namespace h5mirror::server
