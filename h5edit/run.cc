#include "h5edit/run.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/standard_streams.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/version.h"
#include "cli/process/stop_signal.h"
#include "h5edit/executor.h"
#include "h5edit/options.h"
#include "h5edit/parser.h"
#include "h5edit/recovery.h"
#include "h5edit/report.h"
#include "h5edit/session.h"

namespace h5mirror::edit {
namespace {

constexpr int kFailed = 1;
// The time that a command gets after a signal. On some damaged files HDF5 never returns.
constexpr unsigned kSecondsLeft = 10;
constexpr char kBrokenOff[] =
    "h5edit: the command at work did not end within 10 s of the signal, and was broken off: the "
    "file "
    "is without it\n";

int UsageError(const std::string& wrong) {
  std::cerr << StrCat("h5edit: ", Printable(wrong), "\n") << UsageText();
  return kFailed;
}

// Before HDF5 is started without it.
std::string DriverConfig() {
  const char* const driver = getenv("HDF5_DRIVER");
  const char* const config = getenv("HDF5_DRIVER_CONFIG");
  const bool is_ours = driver != nullptr && std::string_view(driver) == "h5mirror";
  return is_ours && config != nullptr ? config : "";
}

std::string TextOf(const Source& source, const Statement& statement) {
  return std::string(source.text().substr(statement.begin, statement.end - statement.begin));
}

bool IsChange(const Statement& statement) { return Changes(statement.verb); }

// The statements of a script over one file.
class Runner {
 public:
  Runner(const Options& options, const Source& source, const std::vector<Statement>& statements)
      : source_(source), statements_(statements), options_(options), report_(options, source) {}

  int Go() {
    const int exit_code = Edit();
    report_.Summary(exit_code, statements_.size());
    return exit_code;
  }

 private:
  int Edit() {
    const bool would_change = std::any_of(statements_.begin(), statements_.end(), IsChange);
    const bool changes = would_change && !options_.dry_run;
    const Access access = changes        ? Access::kChanges
                          : would_change ? Access::kTries
                                         : Access::kLooks;
    tools::StopSignal stop;
    auto session = Session::Open(options_, access);
    if (!session.ok()) return Error(session.status());
    if (!(*session)->notice().empty()) report_.Error(StrCat("note: ", (*session)->notice()));
    const int exit_code = EditIn(**session, stop, changes);
    const std::string lag = (*session)->MirrorLag();
    if (!lag.empty()) report_.Error(lag);
    return exit_code == 0 && !lag.empty() && (*session)->needs_mirror() ? kFailed : exit_code;
  }

  int EditIn(Session& session, const tools::StopSignal& stop, bool changes) {
    auto executor = Executor::Make(session.file());
    if (!executor.ok()) return Error(executor.status());
    for (const Statement& statement : statements_) {
      if (stop.came()) return Stopped(session, stop.number());
      if (!One(session, *executor, statement)) {
        report_.Left(statement, Close(*executor, session));
        return stop.came() ? 128 + stop.number() : kFailed;
      }
    }
    if (stop.came()) return Stopped(session, stop.number());
    *executor = Executor::None();
    if (!changes) return 0;
    const absl::Status finished = session.Finish(Comment());
    if (finished.ok()) return 0;
    Error(finished);
    report_.Error(StrCat(options_.file, " ", session.Abandon()));
    return kFailed;
  }

  std::string Comment() const {
    const auto last = std::find_if(statements_.rbegin(), statements_.rend(), IsChange);
    const auto count = std::count_if(statements_.begin(), statements_.end(), IsChange);
    if (count == 1 || options_.atomic != Atomic::kYes) return TextOf(source_, *last);
    const auto first = std::find_if(statements_.begin(), statements_.end(), IsChange);
    return StrCat(TextOf(source_, *first), " and ", count - 1, " more");
  }

  bool One(Session& session, Executor& executor, const Statement& statement) {
    std::string before, after, output;
    absl::Status done = absl::OkStatus();
    {
      std::optional<tools::BreakableWork> work;
      if (session.may_be_broken_off()) work.emplace(kSecondsLeft, kBrokenOff);
      if (report_.wants_ddl()) before = executor.TouchedBefore(statement);
      done = executor.Run(statement, &output);
      if (done.ok() && report_.wants_ddl()) after = executor.TouchedAfter(statement);
    }
    if (done.ok() && Changes(statement.verb)) done = session.Done(TextOf(source_, statement));
    if (done.ok()) {
      report_.Done(statement, before, after, output);
      return true;
    }
    report_.Failed(statement,
                   {source_.PlaceOf(executor.blame()), std::string(ToStd(done.message()))});
    return false;
  }

  std::string Close(Executor& executor, Session& session) {
    executor = Executor::None();
    const std::string left = session.Abandon();
    return options_.dry_run ? "was not touched" : left;
  }

  int Stopped(Session& session, int signal) {
    report_.Error(StrCat("stopped by a signal; ", options_.file, " ", session.Abandon()));
    return 128 + signal;
  }

  int Error(const absl::Status& status) {
    report_.Error(std::string(ToStd(status.message())));
    return kFailed;
  }

  const Source& source_;
  const std::vector<Statement>& statements_;
  const Options& options_;
  Report report_;
};

int EditFileOf(const Options& options) {
  const Source source(options.script_name, options.script);
  std::vector<Statement> statements;
  Problem problem;
  if (!Parse(source, ReadTextFile, &statements, &problem)) {
    Report report(options, source);
    report.SyntaxError(problem);
    report.Summary(kFailed, 0);
    return kFailed;
  }
  if (const absl::Status started = hdf5::StartLibrary(); !started.ok()) {
    std::cerr << StrCat("h5edit: ", Printable(ToStd(started.message())), "\n");
    return kFailed;
  }
  if (options.verbose) hdf5::ShowErrorStacks();
  return Runner(options, source, statements).Go();
}

int RecoverFileOf(const Options& options) {
  std::string said;
  absl::Status recovered = hdf5::StartLibrary();
  if (recovered.ok()) recovered = Recover(options, &said);
  std::cout << said;
  if (recovered.ok()) return 0;
  std::cerr << StrCat("h5edit: ", Printable(ToStd(recovered.message())), "\n");
  return kFailed;
}

int RunTask(const Options& options) {
  switch (options.task) {
    case Task::kHelp:
      std::cout << UsageText();
      return 0;
    case Task::kVersion:
      std::cout << StrCat("h5edit ", kVersion, ", of h5mirror, " H5MIRROR_VERSION_DATE "\n");
      return 0;
    case Task::kRecover:
      return RecoverFileOf(options);
    case Task::kEdit:
      break;
  }
  return EditFileOf(options);
}

}  // namespace

int Run(const std::vector<std::string>& words) {
  HoldStandardStreams();
  Options options;
  const std::string wrong = ParseOptions(words, &options);
  if (!wrong.empty()) return UsageError(wrong);
  if (getenv("H5EDIT_DEBUG") != nullptr) options.verbose = true;
  // The reader of the output may go away, as `head` does. A write must not break off for that.
  signal(SIGPIPE, SIG_IGN);
  options.driver_config = DriverConfig();
  const int exit_code = RunTask(options);
  if (std::cout.flush()) return exit_code;
  std::cerr
      << "h5edit: standard output could not be written, so output is lost; the changes of the file "
         "stay\n";
  return exit_code == 0 ? kFailed : exit_code;
}

}  // namespace h5mirror::edit
