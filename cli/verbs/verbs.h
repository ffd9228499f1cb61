// The verbs of h5mirror, one .cc each: verb_<name>.cc.
#ifndef H5MIRROR_CLI_VERBS_VERBS_H_
#define H5MIRROR_CLI_VERBS_VERBS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/exit_code.h"
#include "cli/verbs/hdf5_runners.h"

namespace h5mirror::tools {

// Runs after the command line was understood. Returns an exit code, or an error that main()
// prints and turns into one.
using Action = std::function<absl::StatusOr<int>()>;

// Once `verb` is parsed, `action` is `run` with its options.
template <typename Options>
void OnVerb(CLI::App& verb, Context& context, Action& action, std::shared_ptr<Options> options,
            absl::StatusOr<int> (*run)(Context&, const Options&)) {
  verb.callback([&context, &action, options, run] {
    action = [&context, options, run] { return run(context, *options); };
  });
}

// Each adds its verb to `app`; parsing that verb sets `action`. All arguments outlive the run.
void AddLs(CLI::App& app, Context& context, Action& action);
void AddStatus(CLI::App& app, Context& context, Action& action);
// `arguments` are all of the command line; no `runner`: the helper program gets them.
void AddLog(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
            const ObjectLogRunner& runner, Action& action);
void AddBlame(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
              const ObjectLogRunner& runner, Action& action);
void AddFind(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
             const FindRunner& runner, Action& action);
void AddShow(CLI::App& app, Context& context, Action& action);
void AddDiff(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
             const DiffRunner& runner, Action& action);
void AddTag(CLI::App& app, Context& context, Action& action);
void AddUntag(CLI::App& app, Context& context, Action& action);
void AddCommit(CLI::App& app, Context& context, Action& action);
void AddWatch(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
              const CutComparerFactory& comparer, Action& action);
void AddMv(CLI::App& app, Context& context, Action& action);
void AddChown(CLI::App& app, Context& context, Action& action);
void AddRm(CLI::App& app, Context& context, Action& action);
void AddUndelete(CLI::App& app, Context& context, Action& action);
void AddExport(CLI::App& app, Context& context, Action& action);
void AddRollback(CLI::App& app, Context& context, Action& action);
void AddFork(CLI::App& app, Context& context, Action& action);
void AddPromote(CLI::App& app, Context& context, Action& action);
void AddPrune(CLI::App& app, Context& context, Action& action);
void AddArchive(CLI::App& app, Context& context, Action& action);
void AddStats(CLI::App& app, Context& context, Action& action);
void AddUsage(CLI::App& app, Context& context, Action& action);
void AddVerify(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
               const VersionOpener& opener, Action& action);
void AddRecover(CLI::App& app, Context& context, Action& action);
void AddPush(CLI::App& app, Context& context, Action& action);
void AddRestore(CLI::App& app, Context& context, Action& action);
void AddResync(CLI::App& app, Context& context, Action& action);
void AddAdopt(CLI::App& app, Context& context, Action& action);
void AddRehome(CLI::App& app, Context& context, Action& action);
void AddLogin(CLI::App& app, Context& context, Action& action);
void AddLogout(CLI::App& app, Context& context, Action& action);
// Python gets `arguments`, which are all of the command line.
void AddWeb(CLI::App& app, const std::vector<std::string>& arguments, Action& action);
void AddDoctor(CLI::App& app, Context& context, Action& action);
// `program` is another command line; it is filled in before the action runs.
void AddExec(CLI::App& app, Context& context, const std::vector<std::string>& program,
             Action& action);

// `ls --removed`: at most `limit` files (0: all), newest removal first.
absl::StatusOr<int> ListRemoved(Context& context, rpc::Client& client, int64_t limit);

// One sentence on how FILE is understood, for the verbs' help.
inline constexpr char kFileHelp[] =
    "a name under the server's root, or a local path that has in X.h5.h5m a record of its mirror "
    "(with server and name), or its history";

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERBS_H_
