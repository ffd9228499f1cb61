#include "cli/verbs/each_file.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/batch_progress.h"

namespace h5mirror::tools {
namespace {

// Of one mirror of one file: what it was told, or why it has had no turn.
struct Turn {
  std::string local = {};
  std::string server = {};  // empty: it need not be named
  absl::StatusOr<FileOutcome> outcome = absl::CancelledError();
  bool was_left_out = false;  // its server is away
  std::string notes = {};     // what the verb said of it meanwhile
};

// Collects the outcomes, and prints them in the order of the files.
class Outcomes {
 public:
  Outcomes(Context& context, const EachFileExtras& extras) : context_(context), extras_(extras) {}

  void Add(Turn turn) {
    context_.streams().err << turn.notes << std::flush;
    if (turn.was_left_out) {
      ++failed_;
    } else if (turn.outcome.ok()) {
      if (!turn.server.empty()) turn.outcome->text = StrCat(turn.server, ": ", turn.outcome->text);
      json_.push_back(std::move(turn.outcome->json));
      if (!extras_.is_quiet) context_.Say(turn.outcome->text);
    } else {
      AddError(turn.local, turn.server, turn.outcome.status());
    }
  }

  int Finish() {
    Json document{{"files", json_}};
    if (extras_.summary) {
      const FileOutcome summary = extras_.summary(failed_);
      document.update(summary.json);
      if (!extras_.is_quiet && !summary.text.empty()) context_.Say(summary.text);
    }
    if (context_.json()) context_.Print(document);
    return code_;
  }

 private:
  void AddError(const std::string& local, const std::string& server, const absl::Status& error) {
    ++failed_;
    if (code_ == kExitOk) code_ = ExitCodeFor(error);
    context_.Note(StrCat(server, server.empty() ? "" : ": ", error.message()));
    Json json{{"local", local}, {"action", "failed"}, {"error", std::string(error.message())}};
    if (!server.empty()) json["server"] = server;
    json_.push_back(std::move(json));
  }

  Context& context_;
  const EachFileExtras& extras_;
  int failed_ = 0;
  int code_ = kExitOk;
  Json json_ = Json::array();
};

uint64_t SizeOf(const std::string& local) {
  std::error_code error;
  const uintmax_t size_bytes = std::filesystem::file_size(local, error);
  return error ? 0 : size_bytes;
}

// One thread's part of the work: a context of its own, whose notes are told with the file's
// outcome.
class Worker {
 public:
  Worker(Context& context, BatchProgress& progress, const FileTurn& turn)
      : streams_{.out = text_, .err = text_, .zone = context.streams().zone, .batch = &progress},
        context_(context.flags(), streams_),
        turn_(turn) {}

  void Take(const FileArg& mirror, Turn& turn) {
    turn.outcome = turn_(context_, turn.local, mirror);
    turn.notes = std::exchange(text_, std::ostringstream()).str();
  }

 private:
  std::ostringstream text_;
  Streams streams_;
  Context context_;
  const FileTurn& turn_;
};

// Many files, which some threads take one after the other.
class Rounds {
 public:
  Rounds(Context& context, const std::vector<std::string>& locals, const FileTurn& turn,
         const EachFileExtras& extras)
      : context_(context),
        locals_(locals),
        turn_(turn),
        outcomes_(context, extras),
        progress_(context.streams(), locals.size(), extras.total_bytes) {}

  int Run(int jobs) {
    std::vector<std::thread> threads;
    const int more = std::min(jobs, static_cast<int>(locals_.size())) - 1;
    for (int i = 0; i < more; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    return outcomes_.Finish();
  }

 private:
  // Until no file is left.
  void Work() {
    Worker worker(context_, progress_, turn_);
    while (true) {
      const size_t number = next_++;
      if (number >= locals_.size()) return;
      std::vector<Turn> turns = TurnsOf(locals_[number], worker);
      progress_.FileDone(SizeOf(locals_[number]));
      TellInOrder(number, std::move(turns));
    }
  }

  std::vector<Turn> TurnsOf(const std::string& local, Worker& worker) {
    std::vector<Turn> turns;
    const auto mirrors = ResolveMirrorsOf(local, context_.flags().client.server);
    if (!mirrors.ok()) {
      turns.push_back({.local = local, .outcome = mirrors.status()});
      return turns;
    }
    for (const FileArg& mirror : *mirrors) {
      Turn& turn = turns.emplace_back(
          Turn{.local = local, .server = mirrors->size() > 1 ? mirror.server : ""});
      turn.was_left_out = IsAway(mirror.server);
      if (turn.was_left_out) continue;
      worker.Take(mirror, turn);
      if (absl::IsUnavailable(turn.outcome.status())) NoteAway(mirror.server);
    }
    return turns;
  }

  void TellInOrder(size_t number, std::vector<Turn> turns) {
    absl::MutexLock lock(&mutex_);
    waiting_[number] = std::move(turns);
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == told_;
         first = waiting_.erase(first), ++told_) {
      progress_.Tell([&] {
        for (Turn& turn : first->second) outcomes_.Add(std::move(turn));
      });
    }
  }

  bool IsAway(const std::string& server) {
    absl::MutexLock lock(&mutex_);
    return away_.contains(server);
  }
  void NoteAway(const std::string& server) {
    absl::MutexLock lock(&mutex_);
    away_.insert(server);
  }

  Context& context_;
  const std::vector<std::string>& locals_;
  const FileTurn& turn_;
  std::atomic<size_t> next_ = 0;
  absl::Mutex mutex_;
  size_t told_ ABSL_GUARDED_BY(mutex_) = 0;                              // files, the first ones
  std::map<size_t, std::vector<Turn>> waiting_ ABSL_GUARDED_BY(mutex_);  // for those before them
  std::set<std::string> away_ ABSL_GUARDED_BY(mutex_);
  Outcomes outcomes_;  // under mutex_, but at the end
  BatchProgress progress_;
};

// With the caller's own context, and its own progress.
absl::StatusOr<int> RunOne(Context& context, const std::string& local, const FileTurn& turn,
                           const EachFileExtras& extras) {
  H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors,
                       ResolveMirrorsOf(local, context.flags().client.server));
  Outcomes outcomes(context, extras);
  std::set<std::string> away;
  for (const FileArg& mirror : mirrors) {
    Turn one{.local = local, .server = mirrors.size() > 1 ? mirror.server : ""};
    one.was_left_out = away.contains(mirror.server);
    if (!one.was_left_out) one.outcome = turn(context, local, mirror);
    if (absl::IsUnavailable(one.outcome.status())) away.insert(mirror.server);
    if (mirrors.size() == 1) H5M_RETURN_IF_ERROR(one.outcome.status());
    outcomes.Add(std::move(one));
  }
  return outcomes.Finish();
}

}  // namespace

absl::StatusOr<int> ForEachMirror(Context& context, const std::vector<std::string>& locals,
                                  const FileTurn& turn, const EachFileExtras& extras) {
  if (locals.size() == 1) return RunOne(context, locals.front(), turn, extras);
  return Rounds(context, locals, turn, extras).Run(extras.jobs);
}

}  // namespace h5mirror::tools
