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
#include "archive/root_archive.h"
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
#include "server/restore_cells.h"
#include "server/state/root_hint.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kCallTimeout = kRestoreCallTimeout;
constexpr absl::Duration kTellEvery = absl::Seconds(2);
// After the former server has noticed, a call of it may be under way.
constexpr absl::Duration kLastCalls = absl::Seconds(30);
// In a cell that is whole while others are not ended yet: the archive's id. Then a run that was
// killed in between is gone on with.
constexpr char kEndedFile[] = ".h5mirror/restored";
constexpr size_t kEndedBytesMax = 64;

// What became of a file.
struct Outcome {
  store::RestorableFile file;
  std::string prefix;  // of its name, for people: "CELL/", or empty
  std::string state;   // "listed", "restored", "there", "no copy", "damaged", "failed", "no root"
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
               {"copy_bytes", file.copy_bytes},
               {"lost_bytes", file.lost_bytes}});
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
    std::string name = NameOf(outcome);
    if (name.empty()) name = StrCat("file ", outcome.prefix, HexOf(file.file_id));
    if (outcome.state == "no root") name = StrCat("cell ", outcome.prefix);
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
      is_ended_ = WasEnded();
      return absl::OkStatus();
    }
    if (absl::IsNotFound(owner.status()) && !kept_.empty()) {
      return absl::OkStatus();  // A crash while it was taken over.
    }
    const absl::Status odd =
        absl::IsNotFound(owner.status())
            ? absl::NotFoundError(
                  StrCat(archive_.Describe(), " is no archive of a root: it lacks the object \"",
                         archive::RootArchive::kOwnerObject, "\": is its disk mounted?"))
            : owner.status();
    const bool is_odd = absl::IsNotFound(odd) || absl::IsFailedPrecondition(odd);
    if (prefix_.empty() || !is_odd) return odd;
    no_root_ = odd;  // One cell that is odd keeps no other one from coming back.
    std::cerr << "h5mirrord: the cell " << Printable(prefix_) << ": "
              << Printable(ToStd(no_root_.message())) << "\n";
    return absl::OkStatus();
  }

  // Makes the root, or goes on with that of an earlier run.
  ExitCode Begin() {
    // The directory of a cell need not be there.
    if (!prefix_.empty()) {
      std::error_code error;
      // Not DIR itself: without its disk all would come to where that is mounted later.
      if (!std::filesystem::is_directory(request_.root, error)) {
        return Fail(absl::NotFoundError(StrCat(request_.root.string(), " is no directory")),
                    ExitCode::kNoRoot);
      }
      std::filesystem::create_directories(root_, error);
    }
    if (!is_ended_) {
      auto restore = store::RootRestore::Begin(env_, root_, begin_id_);
      if (!restore.ok()) return Fail(restore.status(), CodeOf(restore.status()));
      restore_ = *std::move(restore);
    }
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
    if (!no_root_.ok()) {
      NoteNoRoot();
      return absl::OkStatus();
    }
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
    if (is_ended_) {
      LookForAll();
      return true;
    }
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
  // Whether there is something to restore. Else no root is made, as of a cell without a copy. But
  // where all of a cluster is taken over, so is each cell: its part would be the former one's.
  bool IsWanted() const {
    if (!no_root_.ok()) return false;
    const bool is_taken_with_all =
        request_.takes_over && request_.files.empty() && !prefix_.empty();
    return is_ended_ || is_taken_with_all || restore_ != nullptr || Count("listed") > 0;
  }
  // Whether all is there that the request wants.
  bool IsWhole() const {
    const size_t come = Count("restored") + Count("there");
    return come + (request_.skips_damaged ? CountLeftOut() : 0) == outcomes_.size();
  }
  // What --skip-damaged leaves out.
  size_t CountLeftOut() const { return Count("damaged") + Count("no copy") + Count("no root"); }
  // Before the first part is ended, and after the last one.
  absl::Status NoteEnd() { return KeepRootFile(env_, root_, kEndedFile, owner_); }
  absl::Status ForgetEnd() { return ForgetRootFile(env_, root_, kEndedFile); }
  absl::Status End() { return is_ended_ ? absl::OkStatus() : restore_->End(); }

 private:
  // Whether an earlier run has ended this part, and not all others.
  bool WasEnded() {
    const auto id = ReadRootHint(env_, root_, kEndedFile, kEndedBytesMax);
    if (!id.ok() || *id != owner_) return false;
    const auto tree = env_.OpenTree(root_);
    return tree.ok() && store::CheckNotBeingRestored(**tree).ok();
  }

  void LookForAll() {
    for (Outcome& outcome : outcomes_) {
      if (outcome.state != "listed") continue;
      std::error_code error;
      const bool is_there = std::filesystem::exists(root_ / (outcome.file.name + ".h5m"), error);
      outcome.state = is_there ? "there" : "failed";
      if (!is_there) outcome.error = "an earlier run has restored its cell to the end without it";
    }
  }

  void NoteNoRoot() {
    if (!request_.files.empty()) return;  // None of its files has a name.
    Outcome outcome{{}, prefix_, "no root", std::string(no_root_.message())};
    outcome.file.status = no_root_;
    outcomes_.push_back(std::move(outcome));
  }

  static void SetFailed(const absl::Status& status, Outcome* outcome) {
    const bool is_of_file = absl::IsDataLoss(status) || absl::IsAlreadyExists(status);
    outcome->state = is_of_file ? "damaged" : "failed";
    if (absl::IsNotFound(outcome->file.status)) outcome->state = "no copy";
    outcome->error = ToStd(status.message());
  }

  static void TellLost(Outcome* outcome) {
    if (outcome->file.lost_bytes == 0) return;
    outcome->error = StrCat("without ", HumanBytes(outcome->file.lost_bytes),
                            " of pages that were damaged before they were copied: reads of these "
                            "fail, and h5mirror verify names them");
  }

  absl::Status RestoreOne(const store::RestoreOptions& options, Outcome* outcome) {
    const auto restored = restore_->Restore(archive_, options, &outcome->file);
    if (!restored.ok()) {
      SetFailed(restored.status(), outcome);
      std::cerr << "h5mirrord: " << Printable(prefix_ + outcome->file.name) << ": "
                << Printable(outcome->error) << "\n";
    } else {
      outcome->state = *restored ? "restored" : "there";
      TellLost(outcome);
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
  bool is_ended_ = false;                        // that run has ended this part
  absl::Status no_root_;                         // why the part is none of a cell
  std::string begin_id_;                         // of RootRestore::Begin()
};

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
      H5M_ASSIGN_OR_RETURN(auto part,
                           OpenArchivePart(request_.archive, PartOfCell(*request_.cell)));
      parts_.emplace_back(request_, std::move(part), request_.root, "");
      return absl::OkStatus();
    }
    const auto owner = archive::ReadArchiveOwner(*archive, kCallTimeout);
    if (absl::IsNotFound(owner.status())) {
      H5M_ASSIGN_OR_RETURN(const std::set<std::string> cells, ListCells(*archive));
      H5M_RETURN_IF_ERROR(CheckCellsApart(cells));
      for (const std::string& cell : cells) {
        H5M_ASSIGN_OR_RETURN(auto part, OpenArchivePart(request_.archive, PartOfCell(cell)));
        parts_.emplace_back(request_, std::move(part), request_.root / cell,
                            cell.empty() ? "" : StrCat(cell, "/"));
      }
    } else {
      H5M_RETURN_IF_ERROR(CheckHasNoCells(*archive));
    }
    if (parts_.empty()) {
      parts_.emplace_back(request_, std::move(archive), request_.root, "");
    } else {
      whole_cluster_ = std::move(archive);
    }
    return absl::OkStatus();
  }

  // Two owners have used one place: that of a root, and the cells of a cluster.
  static absl::Status CheckHasNoCells(store::ObjectStore& archive) {
    H5M_ASSIGN_OR_RETURN(const store::ObjectPage page,
                         archive.List(kCellParts, "", 1, kCallTimeout));
    if (page.objects.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat(archive.Describe(), " has an object \"", archive::RootArchive::kOwnerObject,
               "\", as the archive of one root has, and ", page.objects.front().name,
               ", as that of a cluster: restore the cells one by one with --cell"));
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
    // The new cluster may have another registry. The first of its servers makes the object anew. By
    // now no server of the former one puts it back.
    if (whole_cluster_ != nullptr) {
      H5M_RETURN_IF_ERROR(whole_cluster_->Delete(archive::ClusterMark::kObject, kCallTimeout));
    }
    for (Part& part : parts_) {
      if (part.IsWanted()) H5M_RETURN_IF_ERROR(part.EndTakeOver());
    }
    return absl::OkStatus();
  }

  absl::Status EndAll() {
    std::vector<Part*> wanted;
    for (Part& part : parts_) {
      if (part.IsWanted()) wanted.push_back(&part);
    }
    // One alone is ended or not.
    const bool is_noted = wanted.size() > 1;
    for (Part* const part : wanted) {
      if (is_noted) H5M_RETURN_IF_ERROR(part->NoteEnd());
    }
    for (Part* const part : wanted) H5M_RETURN_IF_ERROR(part->End());
    for (Part* const part : wanted) {
      if (is_noted) H5M_RETURN_IF_ERROR(part->ForgetEnd());
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
    const absl::Status ended = is_whole ? EndAll() : absl::OkStatus();
    Print(request_, Outcomes(), is_whole && ended.ok());
    if (!ended.ok()) return Fail(ended, ExitCode::kFailed);
    if (is_whole) return TellSettings();
    std::cerr << "h5mirrord: the root is not whole, and no server serves it: run the command again";
    size_t damaged = 0;
    for (const Part& part : parts_) damaged += part.CountLeftOut();
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
  std::string where_;                                  // of the archive
  std::unique_ptr<store::ObjectStore> whole_cluster_;  // null: one root, or one cell
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
