// h5mirror watch: a line for each new cut of a file.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/time_spec.h"
#include "tools/child.h"
#include "tools/file_arg.h"
#include "tools/verbs.h"

namespace h5mirror::tools {
namespace {

// One call; the server answers as soon as there is something to say.
constexpr absl::Duration kCallTime = absl::Minutes(1);
// What an answer may take beyond that.
constexpr absl::Duration kGrace = absl::Seconds(10);
// Between two tries at a server that is away.
constexpr absl::Duration kRetry = absl::Seconds(1);
// A server that starts again knows of no writer, and after a kill not of a file without a durable
// cut. A writer that lives tries twice a second: it is back by then.
constexpr absl::Duration kWriterReturns = absl::Seconds(10);

struct Options {
  std::string file;
  std::string command;
  int64_t count = 0;         // 0: no end
  int64_t after_cut = -1;    // -1: begins with the newest one
  double every_seconds = 0;  // between two lines at least
  bool until_done = false;
};

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// Nobody will read what is printed: the other end of the pipe is closed.
bool IsReaderGone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

class Watch {
 public:
  Watch(Context& context, const Options& options, FileArg file, rpc::Client& client)
      : context_(context), options_(options), file_(std::move(file)), client_(client) {}

  absl::StatusOr<int> Run() {
    if (options_.after_cut >= 0) after_cut_ = options_.after_cut;
    for (int64_t lines = 0; options_.count == 0 || lines < options_.count;) {
      H5M_ASSIGN_OR_RETURN(const v1::WaitForCutResponse answer, Next());
      const bool is_done = options_.until_done && !answer.has_writer() && TimeToReturn() == kNone;
      if (answer.cut() > after_cut_) {
        ++lines;
        H5M_RETURN_IF_ERROR(Tell(answer));
        after_cut_ = answer.cut();
        written_bytes_ = answer.written_bytes();
        has_told_ = true;
        if (!is_done) absl::SleepFor(absl::Seconds(options_.every_seconds));
      }
      if (is_done || IsReaderGone()) break;
    }
    return kExitOk;
  }

 private:
  static constexpr absl::Duration kNone = absl::ZeroDuration();

  // How much longer a writer from before an outage may take to come back.
  absl::Duration TimeToReturn() const { return std::max(kNone, returns_until_ - absl::Now()); }

  // The next answer, whatever becomes of the server meanwhile once it has answered.
  absl::StatusOr<v1::WaitForCutResponse> Next() {
    for (bool is_away = false;;) {
      absl::StatusOr<v1::WaitForCutResponse> answer = Ask();
      if (answer.ok()) {
        has_answered_ = true;
        if (answer->has_writer()) returns_until_ = absl::InfinitePast();
        return answer;
      }
      // A server that stops may cancel what it was just asked.
      const bool is_gone = absl::IsUnavailable(answer.status()) ||
                           absl::IsDeadlineExceeded(answer.status()) ||
                           absl::IsCancelled(answer.status());
      const bool may_return = absl::IsNotFound(answer.status()) && TimeToReturn() > kNone;
      if (!has_answered_ || (!is_gone && !may_return) || IsReaderGone()) return answer.status();
      if (!std::exchange(is_away, true)) {
        context_.Note(StrCat(answer.status().message(), "; waiting for it"));
      }
      absl::SleepFor(kRetry);
      if (is_gone) returns_until_ = absl::Now() + kWriterReturns;
    }
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
    return client_.WaitForCut(request, wait + kGrace);
  }

  absl::Status Tell(const v1::WaitForCutResponse& answer) {
    const absl::Time time = TimeOf(answer.server_time());
    const absl::Duration lag = std::max(absl::ZeroDuration(), TimeOf(answer.answer_time()) - time);
    // Of the first one, and after a restart of the server, nobody knows.
    const bool is_known = has_told_ && answer.written_bytes() >= written_bytes_;
    const uint64_t written = is_known ? answer.written_bytes() - written_bytes_ : 0;
    if (context_.json()) {
      Json json{{"file", file_.name},
                {"cut", answer.cut()},
                {"time", rpc::UtcText(time)},
                {"lag_ms", std::round(absl::ToDoubleMilliseconds(lag) * 1000) / 1000},
                {"size_bytes", answer.size_bytes()},
                {"written_bytes", nullptr},
                {"has_writer", answer.has_writer()}};
      if (is_known) json["written_bytes"] = written;
      context_.streams().out << json.dump() << std::endl;  // One line, now: programs read it.
    } else {
      const std::string wrote = is_known ? StrCat("  ", HumanBytes(written), " written") : "";
      context_.Say(StrCat(HumanTime(time), "  cut ", answer.cut(), "  ",
                          HumanBytes(static_cast<uint64_t>(answer.size_bytes())), wrote, "  lag ",
                          HumanDuration(absl::Trunc(lag, absl::Milliseconds(1)))));
      context_.streams().out.flush();
    }
    return options_.command.empty() ? absl::OkStatus() : Execute(answer, time);
  }

  // A command that fails is told of, and the next cut runs it again.
  absl::Status Execute(const v1::WaitForCutResponse& answer, absl::Time time) {
    H5M_ASSIGN_OR_RETURN(const int code, RunToEnd({"/bin/sh", "-c", options_.command},
                                                  {{"H5MIRROR_FILE", file_.name},
                                                   {"H5MIRROR_SERVER", client_.options().server},
                                                   {"H5MIRROR_CUT", StrCat(answer.cut())},
                                                   {"H5MIRROR_SIZE", StrCat(answer.size_bytes())},
                                                   {"H5MIRROR_TIME", rpc::UtcText(time)}}));
    if (code != 0) {
      context_.Note(StrCat("cut ", answer.cut(), ": '", options_.command, "' ended with ", code));
    }
    return absl::OkStatus();
  }

  Context& context_;
  const Options& options_;
  const FileArg file_;
  rpc::Client& client_;
  int64_t after_cut_ = 0;
  uint64_t written_bytes_ = 0;
  bool has_told_ = false;
  bool has_answered_ = false;
  absl::Time returns_until_ = absl::InfinitePast();
};

absl::StatusOr<int> RunWatch(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const FileArg file,
                       ResolveFileArg(options.file, context.flags().client.server));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(file.server));
  return Watch(context, options, file, *client).Run();
}

}  // namespace

void AddWatch(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "watch", "Print a line for each new cut of a file (H5Fflush, close), as it is made");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  verb->add_option("-n,--count", options->count, "end after this many lines")
      ->check(CLI::PositiveNumber);
  verb->add_option("--after", options->after_cut,
                   "only cuts newer than this one; without it the newest is the first line")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--every", options->every_seconds,
                   "at most one line in so many seconds: the newest cut of then")
      ->check(CLI::Range(0.0, 86400.0));
  verb->add_flag("--until-done", options->until_done, "end when nobody writes the file any more");
  verb->add_option("--exec", options->command,
                   "run this with /bin/sh for each line, and wait for it; H5MIRROR_FILE, "
                   "H5MIRROR_CUT, H5MIRROR_SIZE, H5MIRROR_TIME and H5MIRROR_SERVER tell which");
  verb->callback([&context, &action, options] {
    action = [&context, options] { return RunWatch(context, *options); };
  });
}

}  // namespace h5mirror::tools
