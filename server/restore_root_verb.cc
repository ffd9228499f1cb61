#include "server/restore_root_verb.h"

#include <iostream>
#include <memory>
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
  std::string state;  // "listed", "restored", "there", "no copy", "damaged", "failed"
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

Json ToJson(const Outcome& outcome) {
  const store::RestorableFile& file = outcome.file;
  Json json = {{"name", file.name},
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
    const std::string name = file.name.empty() ? StrCat("file ", HexOf(file.file_id)) : file.name;
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

// One run of the command.
class Run {
 public:
  Run(const RestoreRootRequest& request, store::ObjectStore& archive)
      : request_(request), archive_(archive), env_(Env::Posix()) {}

  ExitCode Do() {
    const absl::Status known = FindOwner();
    if (!known.ok()) return Fail(known, ExitCode::kFailed);
    if (request_.is_dry_run) return List();
    // An archive that has nothing to restore is not taken over, and no root is ended for it.
    auto outcomes = Find();
    if (!outcomes.ok()) return Fail(outcomes.status(), ExitCode::kFailed);
    if (Count(*outcomes, "listed") == 0) return FailWithout(*outcomes);
    auto restore = store::RootRestore::Begin(env_, request_.root, begin_id_);
    if (!restore.ok()) return Fail(restore.status(), CodeOf(restore.status()));
    if (request_.takes_over) {
      if (const absl::Status taken = TakeOver(); !taken.ok()) return Fail(taken, ExitCode::kFailed);
    } else if (!kept_.empty()) {
      return Fail(
          absl::FailedPreconditionError(
              "an earlier run had --take-over: go on with it, or begin in another directory"),
          ExitCode::kUsage);
    }
    // Until it was taken over, a server of the former root may have replaced copies.
    if (request_.takes_over) outcomes = Find();
    if (!outcomes.ok()) return Fail(outcomes.status(), ExitCode::kFailed);
    return RestoreAll(**restore, *outcomes);
  }

 private:
  // Whose the archive is. An earlier run may have begun to take it over.
  absl::Status FindOwner() {
    const auto kept = KeptArchive(env_, request_.root);
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

  // From now on a server of the former root makes no call, so that nothing of what is restored
  // goes meanwhile.
  absl::Status TakeOver() {
    if (is_taken_ && owner_ == kept_) return absl::OkStatus();
    const std::string id = kept_.empty() ? HexOf(RandomBytes16()) : kept_;
    H5M_RETURN_IF_ERROR(KeepArchive(env_, request_.root, StrCat(id, " new")));
    if (owner_ != id) {
      H5M_RETURN_IF_ERROR(archive::ReplaceArchiveOwner(archive_, id, kCallTimeout));
    }
    // A directory is looked at before each call. An earlier run may have been killed meanwhile.
    if (request_.archive.starts_with("s3:")) {
      const absl::Duration wait = archive::RootArchive::kOwnerCheckEvery + kLastCalls;
      std::cerr << "h5mirrord: waits " << HumanDuration(wait)
                << ", until a server of the former root has noticed\n";
      absl::SleepFor(wait);
    }
    return KeepArchive(env_, request_.root, id);
  }

  // The files that the request names.
  absl::StatusOr<std::vector<Outcome>> Find() {
    H5M_ASSIGN_OR_RETURN(auto files, store::ListRestorable(archive_));
    std::vector<Outcome> outcomes;
    size_t nameless = 0;
    for (store::RestorableFile& file : files) {
      if (!request_.files.empty() && file.name.empty()) ++nameless;
      if (!request_.files.empty() && !AnyGlobMatches(request_.files, file.name)) continue;
      Outcome outcome{std::move(file), "listed", ""};
      if (!outcome.file.status.ok()) SetFailed(outcome.file.status, &outcome);
      outcomes.push_back(std::move(outcome));
    }
    if (nameless > 0) {
      std::cerr
          << "h5mirrord: --files leaves out files whose names are unknown, as they have no whole "
             "copy: "
          << nameless << "\n";
    }
    return outcomes;
  }

  static void SetFailed(const absl::Status& status, Outcome* outcome) {
    const bool is_of_file = absl::IsDataLoss(status) || absl::IsAlreadyExists(status);
    outcome->state = is_of_file ? "damaged" : "failed";
    if (absl::IsNotFound(outcome->file.status)) outcome->state = "no copy";
    outcome->error = ToStd(status.message());
  }

  ExitCode FailWithout(const std::vector<Outcome>& outcomes) {
    Print(request_, outcomes, false);
    const char* const why = request_.files.empty()
                                ? " has no copy of a file that can be restored: was "
                                  "`archive_heads` true in the lost server?"
                                : " has no copy of a file that --files names";
    return Fail(absl::NotFoundError(StrCat(archive_.Describe(), why)), ExitCode::kFailed);
  }

  ExitCode List() {
    const auto outcomes = Find();
    if (!outcomes.ok()) return Fail(outcomes.status(), ExitCode::kFailed);
    if (Count(*outcomes, "listed") == 0) return FailWithout(*outcomes);
    Print(request_, *outcomes, false);
    return Count(*outcomes, "listed") == outcomes->size() ? ExitCode::kOk : ExitCode::kFailed;
  }

  static size_t Count(const std::vector<Outcome>& outcomes, std::string_view state) {
    size_t count = 0;
    for (const Outcome& outcome : outcomes) count += outcome.state == state ? 1 : 0;
    return count;
  }

  absl::Status RestoreOne(store::RootRestore& restore, const store::RestoreOptions& options,
                          Outcome* outcome) {
    const auto restored = restore.Restore(archive_, options, &outcome->file);
    if (!restored.ok()) {
      SetFailed(restored.status(), outcome);
      std::cerr << "h5mirrord: " << Printable(outcome->file.name) << ": "
                << Printable(outcome->error) << "\n";
    } else {
      outcome->state = *restored ? "restored" : "there";
    }
    return restored.status();
  }

  ExitCode RestoreAll(store::RootRestore& restore, std::vector<Outcome>& outcomes) {
    Progress progress(outcomes.size());
    store::RestoreOptions options;
    options.keep_archived = request_.takes_over;
    options.umask_bits = request_.umask_bits;
    options.on_bytes = [&](uint64_t bytes) { return progress.Came(bytes); };
    for (Outcome& outcome : outcomes) {
      if (outcome.state == "listed" && ConcernsAll(RestoreOne(restore, options, &outcome))) break;
      progress.Ended();
    }
    const size_t come = Count(outcomes, "restored") + Count(outcomes, "there");
    const size_t damaged = Count(outcomes, "damaged") + Count(outcomes, "no copy");
    const bool is_whole = (come > 0 && come == outcomes.size()) ||
                          (request_.skips_damaged && come > 0 && come + damaged == outcomes.size());
    absl::Status ended;
    if (is_whole) ended = restore.End();
    Print(request_, outcomes, is_whole && ended.ok());
    if (!ended.ok()) return Fail(ended, ExitCode::kFailed);
    if (is_whole) return TellSettings();
    std::cerr << "h5mirrord: the root is not whole, and no server serves it: run the command again";
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
  store::ObjectStore& archive_;
  Env& env_;
  std::string owner_;      // of the archive; empty: it has none now
  std::string kept_;       // the id that an earlier run chose to take it over
  bool is_taken_ = false;  // that run has waited, too
  std::string begin_id_;   // of RootRestore::Begin()
};

}  // namespace

ExitCode RestoreRoot(const RestoreRootRequest& request) {
  const auto archive = archive::OpenArchive(Env::Posix(), request.archive);
  if (!archive.ok()) {
    return Fail(absl::Status(archive.status().code(),
                             StrCat("--archive: ", ToStd(archive.status().message()))),
                absl::IsInvalidArgument(archive.status()) ? ExitCode::kUsage : ExitCode::kFailed);
  }
  return Run(request, **archive).Do();
}

}  // namespace h5mirror::server
