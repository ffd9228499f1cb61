// h5mirror watch: a line for each new cut of a file.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/time/clock.h"
#include "base/cli_checks.h"
#include "base/cut_text.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/process/child.h"
#include "cli/verbs/verb_diff.h"
#include "cli/verbs/verbs.h"
#include "rpc/time_spec.h"
#include "rpc/timestamp.h"
#include "sync/cut_changes.h"

namespace h5mirror::tools {
namespace {

// One call; the server answers as soon as there is something to say.
constexpr absl::Duration kCallTime = absl::Minutes(1);
// The longest time of an answer beyond that.
constexpr absl::Duration kGrace = absl::Seconds(10);
// Between two tries at a server that is away.
constexpr absl::Duration kRetry = absl::Seconds(1);
// The longest pause after a line. A program that was stopped (SIGSTOP) amid a line has worked for
// less time than passed.
constexpr absl::Duration kPauseMax = absl::Seconds(10);
// How long a server that was there may be away before its first answer. A cell of a cluster
// has another server after some ten seconds.
constexpr absl::Duration kFirstAnswer = absl::Minutes(1);
// A restarted server knows no writer, and after a kill no file without a durable cut. A living
// writer retries twice a second, so it is back within this time.
constexpr absl::Duration kWriterReturns = absl::Seconds(10);

// The changes of its cut that a line tells.
enum class Tells : uint8_t { kNothing, kBytes, kObjects, kObjectsIfPossible };

struct Options {
  std::string file;
  Tells changes = Tells::kObjectsIfPossible;
  std::string command;
  int64_t count = 0;         // 0: no end
  std::string after_cut;     // as ParseCut() reads it; empty: begins with the newest one
  double every_seconds = 0;  // between two lines at least
  bool until_done = false;
};

// Nobody will read the output: the other end of the pipe is closed.
bool IsReaderGone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

class Watch {
 public:
  // `comparer` may be null: then no line tells of objects.
  Watch(Context& context, const Options& options, FileArg file, rpc::Client& client,
        std::unique_ptr<CutComparer> comparer)
      : context_(context),
        options_(options),
        file_(std::move(file)),
        client_(&client),
        comparer_(std::move(comparer)) {}

  absl::StatusOr<int> Run() {
    if (!options_.after_cut.empty()) {
      H5M_ASSIGN_OR_RETURN(after_cut_, ReadAfter());
    }
    for (int64_t lines = 0; options_.count == 0 || lines < options_.count;) {
      H5M_ASSIGN_OR_RETURN(const v1::WaitForCutResponse answer, Next());
      const bool is_done = options_.until_done && !answer.has_writer() && TimeToReturn() == kNone;
      if (answer.cut() > after_cut_) {
        ++lines;
        const absl::Time began = SteadyNow();
        const Line line = LineOf(answer);
        // The pause is as long as the work was, so the server is busy with this for at most half
        // the time.
        const absl::Duration pause = std::min(SteadyNow() - began, kPauseMax);
        H5M_RETURN_IF_ERROR(Tell(line));
        after_cut_ = line.cut;
        written_bytes_ = answer.written_bytes();
        has_told_ = true;
        if (!is_done) {
          absl::SleepFor(std::max(absl::Seconds(options_.every_seconds), pause));
        }
      }
      if (is_done || IsReaderGone()) break;
    }
    return kExitOk;
  }

 private:
  static constexpr absl::Duration kNone = absl::ZeroDuration();

  absl::StatusOr<int64_t> ReadAfter() {
    v1::GetFileRequest request;
    request.set_name(file_.name);
    H5M_ASSIGN_OR_RETURN(const v1::FileStatus status,
                         Persist([&] { return client_->GetFile(request, kCallTime); }));
    return ParseCut(options_.after_cut, status.last_cut());
  }

  // How much longer a writer from before an outage may take to come back.
  absl::Duration TimeToReturn() const { return std::max(kNone, returns_until_ - absl::Now()); }

  absl::StatusOr<v1::WaitForCutResponse> Next() {
    absl::StatusOr<v1::WaitForCutResponse> answer = Persist([this] { return Ask(); });
    if (answer.ok() && answer->has_writer()) returns_until_ = absl::InfinitePast();
    return answer;
  }

  // The answer of the call, also if the server goes away meanwhile.
  template <typename Call>
  std::invoke_result_t<Call> Persist(Call call) {
    std::optional<absl::Time> ends_at;  // while it is away
    for (;;) {
      std::invoke_result_t<Call> answer = call();
      if (answer.ok()) {
        has_answered_ = true;
        return answer;
      }
      const bool is_gone =
          absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status());
      const bool may_return = absl::IsNotFound(answer.status()) && TimeToReturn() > kNone;
      if ((!is_gone && !may_return) || IsReaderGone()) return answer.status();
      if (!ends_at.has_value()) {
        ends_at = has_answered_ ? absl::InfiniteFuture() : SteadyNow() + kFirstAnswer;
        context_.Note(StrCat(answer.status().message(), "; waiting for it"));
      }
      if (SteadyNow() >= *ends_at) return answer.status();
      const absl::Time again_at = absl::Now() + kRetry;
      if (is_gone) Reconnect();
      absl::SleepFor(again_at - absl::Now());
      if (is_gone) returns_until_ = absl::Now() + kWriterReturns;
    }
  }

  // gRPC connects, and hears that a server ends, only while a thread waits for it. In a program
  // that sleeps between its calls it looks once in 5 s.
  void Reconnect() {
    // In a cluster this is the time of later calls, too.
    const absl::Duration timeout = absl::Seconds(context_.flags().timeout_seconds);
    absl::StatusOr<std::unique_ptr<rpc::Client>> client =
        rpc::Client::Connect(client_->options(), timeout);
    if (!client.ok()) return;
    again_ = *std::move(client);
    client_ = again_.get();
  }

  absl::StatusOr<v1::WaitForCutResponse> Ask() {
    const absl::Duration to_return = TimeToReturn();
    const absl::Duration wait =
        to_return == kNone ? kCallTime : absl::Ceil(to_return, absl::Seconds(1));
    v1::WaitForCutRequest request;
    request.set_name(file_.name);
    request.set_after_cut(after_cut_);
    request.mutable_timeout()->set_seconds(absl::ToInt64Seconds(wait));
    request.set_or_no_writer(options_.until_done && to_return == kNone);
    return client_->WaitForCut(request, wait + kGrace);
  }

  // The fields of a cut that are printed.
  struct Line {
    int64_t cut = 0;
    absl::Time time;
    absl::Duration lag;
    int64_t size_bytes = 0;
    std::optional<uint64_t> written_bytes;
    bool has_writer = false;
    std::optional<CutChanges> changes;
  };

  Line LineOf(const v1::WaitForCutResponse& answer) {
    Line line{.cut = answer.cut(),
              .time = rpc::FromProto(answer.server_time()),
              .lag = rpc::FromProto(answer.answer_time()) - rpc::FromProto(answer.server_time()),
              .size_bytes = answer.size_bytes(),
              .written_bytes = {},
              .has_writer = answer.has_writer(),
              .changes = {}};
    // At the first cut, and after a restart of the server, the number of written bytes is unknown.
    const bool is_known = has_told_ && answer.written_bytes() >= written_bytes_;
    if (is_known && options_.changes != Tells::kNothing) {
      line.written_bytes = answer.written_bytes() - written_bytes_;
    }
    if (comparer_ != nullptr) Compare(line);
    line.lag = std::max(absl::ZeroDuration(), line.lag);
    return line;
  }

  // The line becomes that of a newer cut, where there is one by now.
  void Compare(Line& line) {
    absl::StatusOr<CutComparer::Step> step = comparer_->GoOn(line.cut);
    if (!step.ok()) {
      line.changes.emplace().note = ToStd(step.status().message());
      return;
    }
    const v1::Snapshot& snapshot = step->snapshot;
    if (snapshot.cut() != line.cut) {
      line.cut = snapshot.cut();
      line.time = rpc::FromProto(snapshot.server_time());
      line.lag = rpc::FromProto(snapshot.open_time()) - line.time;
      line.size_bytes = snapshot.size_bytes();
    }
    if (!step->is_first) line.changes = std::move(step->changes);
  }

  absl::Status Tell(const Line& line) {
    context_.json() ? PrintJson(line) : PrintText(line);
    return options_.command.empty() ? absl::OkStatus() : Execute(line);
  }

  void PrintJson(const Line& line) {
    Json json{{"file", file_.name},
              {"cut", line.cut},
              {"time", rpc::UtcText(line.time)},
              {"lag_ms", std::round(absl::ToDoubleMilliseconds(line.lag) * 1000) / 1000},
              {"size_bytes", line.size_bytes},
              {"written_bytes", nullptr},
              {"has_writer", line.has_writer},
              {"changes", nullptr}};
    if (line.written_bytes) json["written_bytes"] = *line.written_bytes;
    if (line.changes) json["changes"] = CutChangesToJson(*line.changes);
    context_.streams().out << DumpLine(json) << std::endl;  // One line, now: programs read it.
  }

  void PrintText(const Line& line) {
    const std::string wrote =
        line.written_bytes ? StrCat("  ", HumanBytes(*line.written_bytes), " written") : "";
    const std::string changed = line.changes ? StrCat("  ", CutChangesText(*line.changes)) : "";
    context_.Say(StrCat(HumanTime(line.time), "  cut ", CutText(line.cut), "  ",
                        HumanBytes(static_cast<uint64_t>(line.size_bytes)), wrote, "  lag ",
                        HumanDuration(absl::Trunc(line.lag, absl::Milliseconds(1))), changed));
    context_.streams().out.flush();
  }

  // A command that fails is told of, and the next cut runs it again.
  absl::Status Execute(const Line& line) {
    H5M_ASSIGN_OR_RETURN(const int code, RunToEnd({"/bin/sh", "-c", options_.command},
                                                  {{"H5MIRROR_FILE", file_.name},
                                                   {"H5MIRROR_SERVER", client_->options().server},
                                                   {"H5MIRROR_CUT", StrCat(line.cut)},
                                                   {"H5MIRROR_SIZE", StrCat(line.size_bytes)},
                                                   {"H5MIRROR_TIME", rpc::UtcText(line.time)}}));
    if (code != 0) {
      context_.Note(
          StrCat("cut ", CutText(line.cut), ": '", options_.command, "' ended with ", code));
    }
    return absl::OkStatus();
  }

  Context& context_;
  const Options& options_;
  const FileArg file_;
  std::unique_ptr<rpc::Client> again_;  // after an outage
  rpc::Client* client_;                 // the one that is asked
  const std::unique_ptr<CutComparer> comparer_;
  int64_t after_cut_ = 0;
  uint64_t written_bytes_ = 0;
  bool has_told_ = false;
  bool has_answered_ = false;
  absl::Time returns_until_ = absl::InfinitePast();
};

absl::StatusOr<int> RunWatch(Context& context, const Options& options,
                             const CutComparerFactory& comparer) {
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  const bool objects = comparer != nullptr && options.changes >= Tells::kObjects;
  return Watch(context, options, file, *file.client,
               objects ? comparer(*file.client, file.name) : nullptr)
      .Run();
}

// Objects are looked at by the helper program, which runs in our place.
bool WantsHelper(const Options& options, const CutComparerFactory& comparer) {
  return comparer == nullptr && options.changes >= Tells::kObjects;
}

}  // namespace

void AddWatch(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
              const CutComparerFactory& comparer, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "watch", "Print a line for each new cut of a file (H5Fflush, close), as it is made");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  verb->add_option("-n,--count", options->count, "end after this many lines")
      ->check(WholeNumber(1));
  verb->add_option("--after", options->after_cut,
                   "only cuts newer than this one (default: from the newest cut on)")
      ->check(WholeNumber(0));
  verb->add_option("--every", options->every_seconds,
                   "at most one line in this many seconds, for the newest cut")
      ->check(AnyNumber(0, 86400));
  verb->add_flag("--until-done", options->until_done,
                 "end when no program has the file open for writing");
  verb->add_option("--exec", options->command,
                   "run this with /bin/sh for each line, and wait for it; the environment has "
                   "H5MIRROR_FILE, H5MIRROR_CUT, H5MIRROR_SIZE, H5MIRROR_TIME, H5MIRROR_SERVER");
  const std::map<std::string, Tells> names{
      {"none", Tells::kNothing}, {"bytes", Tells::kBytes}, {"objects", Tells::kObjects}};
  verb->add_option("--changes", options->changes,
                   "the changes in a line: none; bytes: their number; objects: also groups and "
                   "datasets (default: objects, or bytes without the helper h5mirror-diff)")
      ->transform(OneOfEnum(names))
      ->option_text("none|bytes|objects");
  verb->callback([&context, &action, &arguments, &comparer, options] {
    action = [&context, &arguments, &comparer, options]() -> absl::StatusOr<int> {
      if (WantsHelper(*options, comparer)) {
        auto result = RunHdf5Helper("watch", arguments);
        if (result.ok() || options->changes == Tells::kObjects) return result;
        context.Note(StrCat(ToStd(result.status().message()), "; lines tell bytes only"));
      }
      return RunWatch(context, *options, comparer);
    };
  });
}

}  // namespace h5mirror::tools
