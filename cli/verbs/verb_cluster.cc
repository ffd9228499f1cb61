// The servers that share a root, and which of them serves a cell.
#include "cli/verbs/verb_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "cli/output/wait_progress.h"
#include "cli/verbs/cells_below.h"
#include "cli/verbs/cluster_report.h"

namespace h5mirror::tools {
namespace {

using View = v1::GetClusterResponse;

constexpr absl::Duration kPollEvery = absl::Milliseconds(300);
constexpr double kWaitSeconds = 120;
constexpr double kWaitSecondsMax = 86400;

struct Options {
  std::string server;
  std::string cell;
  bool exit = false;
  bool undo = false;
  bool yes = false;
  bool force = false;
  double wait_seconds = kWaitSeconds;
};

void PrintTables(Context& context, const View& view) {
  std::map<std::string, int> counts = CellCounts(view);
  Table servers({{"SERVER", Align::kLeft},
                 {"STATE", Align::kLeft},
                 {"CELLS", Align::kRight},
                 {"BEAT", Align::kRight},
                 {"VERSION", Align::kLeft, Narrow::kLeaveOut},
                 {"ADDRESS", Align::kLeft, Narrow::kClip},
                 {"HTTP", Align::kLeft, Narrow::kLeaveOut}});
  for (const v1::ClusterServer& server : view.servers()) {
    servers.AddRow(
        {server.id(), WordOf(server.state()), StrCat(counts[server.id()]),
         server.has_beat_age_ms()
             ? absl::StrFormat("%.1f s", static_cast<double>(server.beat_age_ms()) / 1000)
             : "-",
         server.version().empty() ? "-" : server.version(), server.address(),
         server.http().empty() ? "-" : server.http()});
  }
  context.Print(servers);
  Table cells({{"CELL", Align::kLeft, Narrow::kClip},
               {"STATE", Align::kLeft},
               {"SERVER", Align::kLeft},
               {"MOVES TO", Align::kLeft, Narrow::kLeaveOut},
               {"EPOCH", Align::kRight, Narrow::kLeaveOut}});
  for (const v1::ClusterCell& cell : view.cells()) {
    const std::string server = ServerOf(cell);
    cells.AddRow({NameOfCell(cell.directory()), WordOf(cell.state()), server.empty() ? "-" : server,
                  cell.moves_to().empty() ? "-" : cell.moves_to(), StrCat(cell.epoch())});
  }
  context.Say("");
  context.Print(cells);
}

absl::StatusOr<int> RunStatus(Context& context, const Options&) {
  H5M_ASSIGN_OR_RETURN(const auto calls, ConnectCluster(context));
  H5M_ASSIGN_OR_RETURN(const View view, calls->GetCluster());
  const std::vector<std::string> problems = ProblemsOf(view);
  if (context.json()) {
    context.Print(ToJson(view, problems));
  } else {
    PrintTables(context, view);
    if (!problems.empty()) context.Say("");
    for (const std::string& problem : problems) context.Say(StrCat("degraded: ", problem));
  }
  return problems.empty() ? kExitOk : kExitDegraded;
}

// The number of a server's life; 0: there is no such server.
uint64_t LifeOf(const View& view, const std::string& id) {
  const auto found = std::find_if(view.servers().begin(), view.servers().end(),
                                  [&id](const auto& each) { return each.id() == id; });
  return found == view.servers().end() ? 0 : found->epoch();
}

bool IsUp(const View& view, const std::string& id, uint64_t life) {
  return std::any_of(view.servers().begin(), view.servers().end(), [&](const auto& each) {
    return each.id() == id && each.epoch() == life && each.state() == v1::SERVER_STATE_UP;
  });
}

// Looks again and again until `is_done` says so, for `wait_seconds`. False: not within them. A
// server that does not answer meanwhile is asked again; kUnavailable: it did not at the end, or at
// all, where `may_end` says that it is the one that ends.
absl::StatusOr<bool> Await(Context& context, rpc::ClusterCalls& calls, double wait_seconds,
                           const std::string& label, bool may_end,
                           const std::function<bool(const View&)>& is_done) {
  const WaitProgress progress(context.streams(), label);
  const absl::Time deadline = absl::Now() + absl::Seconds(wait_seconds);
  for (;;) {
    const absl::StatusOr<View> view = calls.GetCluster();
    if (!view.ok() && (may_end || !absl::IsUnavailable(view.status()))) return view.status();
    if (view.ok() && is_done(*view)) return true;
    if (absl::Now() >= deadline) {
      H5M_RETURN_IF_ERROR(view.status());
      return false;
    }
    absl::SleepFor(kPollEvery);
  }
}

// With --wait 0 that it is asked for is all there is to say.
absl::StatusOr<int> End(Context& context, const Options& options, const absl::StatusOr<bool>& done,
                        const std::string& asked, const std::string& result) {
  H5M_RETURN_IF_ERROR(done.status());
  if (!*done && options.wait_seconds > 0) {
    return absl::DeadlineExceededError(StrCat(asked, ", and not done within ",
                                              HumanDuration(absl::Seconds(options.wait_seconds)),
                                              "; it goes on. See h5mirror cluster status"));
  }
  if (context.json()) context.Print(Json{{"done", *done}});
  context.Say(*done ? result : asked);
  return kExitOk;
}

absl::StatusOr<int> RunMove(Context& context, const Options& options) {
  const std::string cell = CellOfArgument(options.cell);
  H5M_ASSIGN_OR_RETURN(const auto calls, ConnectCluster(context));
  H5M_ASSIGN_OR_RETURN(const View before, calls->GetCluster());
  const uint64_t life = LifeOf(before, options.server);
  v1::MoveCellRequest request;
  request.set_directory(cell);
  request.set_server(options.server);
  H5M_ASSIGN_OR_RETURN(const v1::MoveCellResponse asked, calls->MoveCell(request));
  std::string owner;
  bool is_void = false;
  const auto is_done = [&](const View& view) {
    // The request ends with the life of the server that it names.
    is_void = !IsUp(view, options.server, life);
    for (const v1::ClusterCell& each : view.cells()) {
      if (each.directory() != cell || each.state() != v1::CELL_STATE_SERVED) continue;
      owner = each.owner();
      return owner == options.server || each.epoch() > asked.epoch() || is_void;
    }
    return false;
  };
  const auto done =
      Await(context, *calls, options.wait_seconds,
            StrCat("move ", NameOfCell(cell), " to ", options.server), /*may_end=*/false, is_done);
  if (done.ok() && *done && owner != options.server) {
    if (is_void) {
      return absl::FailedPreconditionError(StrCat(options.server,
                                                  " was lost, drained or started again meanwhile; ",
                                                  owner, " serves ", NameOfCell(cell)));
    }
    return absl::FailedPreconditionError(StrCat(options.server, " could not take ",
                                                NameOfCell(cell), "; ", owner, " serves it now"));
  }
  return End(context, options, done,
             StrCat(NameOfCell(cell), " is to be handed over to ", options.server),
             StrCat(NameOfCell(cell), " is served by ", options.server, " now"));
}

// Whether it was given up.
bool IsLost(const v1::ClusterServer& server) {
  return server.state() == v1::SERVER_STATE_DEAD || server.state() == v1::SERVER_STATE_FENCED;
}

// Whether the cells that `server` had are served by others.
bool AreElsewhere(const View& before, const View& now, const std::string& server) {
  return std::all_of(now.cells().begin(), now.cells().end(), [&](const v1::ClusterCell& cell) {
    const bool was_its =
        std::any_of(before.cells().begin(), before.cells().end(), [&](const v1::ClusterCell& each) {
          return each.directory() == cell.directory() && each.owner() == server &&
                 each.state() != v1::CELL_STATE_FREE;
        });
    return !was_its || (cell.owner() != server && cell.state() == v1::CELL_STATE_SERVED);
  });
}

absl::StatusOr<int> RunDrain(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const auto calls, ConnectCluster(context));
  v1::DrainServerRequest request;
  request.set_server(options.server);
  request.set_kind(options.undo   ? v1::DRAIN_KIND_UNDO
                   : options.exit ? v1::DRAIN_KIND_EXIT
                                  : v1::DRAIN_KIND_STAY);
  H5M_ASSIGN_OR_RETURN(const View before, calls->GetCluster());
  H5M_RETURN_IF_ERROR(calls->DrainServer(request));
  // The request ends with it.
  const uint64_t life = LifeOf(before, options.server);
  bool is_lost = false;
  const auto is_done = [&](const View& view) {
    for (const v1::ClusterServer& server : view.servers()) {
      if (server.id() != options.server) continue;
      is_lost = IsLost(server) || (!options.undo && server.epoch() != life);
      if (is_lost) return true;
      if (options.undo) return server.state() == v1::SERVER_STATE_UP;
      if (options.exit) return server.state() == v1::SERVER_STATE_GONE;
      if (server.state() == v1::SERVER_STATE_UP) return false;
    }
    return AreElsewhere(before, view, options.server);
  };
  const std::string& server = options.server;
  const bool asks_itself = options.exit && before.node() == server;
  const absl::StatusOr<bool> done =
      Await(context, *calls, options.wait_seconds,
            StrCat(options.undo ? "give cells to " : "drain ", server), asks_itself, is_done);
  if (asks_itself && absl::IsUnavailable(done.status())) {
    if (context.json()) context.Print(Json{{"done", false}, {"ending", true}});
    context.Say(StrCat(server, " is ending: it was asked itself, and answers no more"));
    return kExitOk;
  }
  if (done.ok() && is_lost) {
    return absl::FailedPreconditionError(
        StrCat(server, " was lost, or started again, meanwhile; see h5mirror cluster status"));
  }
  if (options.undo) {
    return End(context, options, done, StrCat(server, " is to take cells again"),
               StrCat(server, " takes cells again"));
  }
  return End(context, options, done, StrCat(server, " is to hand its cells over"),
             options.exit ? StrCat(server, " has handed its cells over, and ended")
                          : StrCat(server, " has handed its cells over; undo: h5mirror cluster ",
                                   "drain --undo ", server));
}

// By a person at a terminal.
absl::Status Confirm(Context& context, const std::string& server) {
  if (isatty(STDIN_FILENO) == 0) {
    return absl::InvalidArgumentError(
        StrCat("evict ends the server ", server, ": to do it without a question, add --yes"));
  }
  context.streams().err << "Give the server " << Printable(server)
                        << " up? It can write nothing more, and others recover its cells. [y/N] "
                        << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return absl::OkStatus();
  return absl::FailedPreconditionError("nothing was done");
}

absl::StatusOr<int> RunEvict(Context& context, const Options& options) {
  if (!options.yes && isatty(STDIN_FILENO) == 0) return Confirm(context, options.server);
  H5M_ASSIGN_OR_RETURN(const auto calls, ConnectCluster(context));
  H5M_ASSIGN_OR_RETURN(const View before, calls->GetCluster());
  const std::string other = AddressOfAnother(before, options.server);
  if (before.node() == options.server && !other.empty()) {
    return absl::FailedPreconditionError(
        StrCat(options.server, " is the server that was asked, and cannot give itself up: ask ",
               "another one, h5mirror --server ", other, " cluster evict ",
               options.yes ? "--yes " : "", options.force ? "--force " : "", options.server));
  }
  if (!options.yes) H5M_RETURN_IF_ERROR(Confirm(context, options.server));
  v1::EvictServerRequest request;
  request.set_server(options.server);
  request.set_force(options.force);
  const absl::Status asked = calls->EvictServer(request);
  const bool is_alive = absl::IsFailedPrecondition(asked) && !options.force &&
                        absl::StrContains(asked.message(), "is alive");
  if (is_alive) {
    return absl::FailedPreconditionError(
        StrCat(asked.message(), "; --force gives it up all the same"));
  }
  H5M_RETURN_IF_ERROR(asked);
  const auto is_done = [&options](const View& view) {
    return std::none_of(view.servers().begin(), view.servers().end(), [&](const auto& server) {
      return server.id() == options.server && server.state() != v1::SERVER_STATE_FENCED &&
             server.state() != v1::SERVER_STATE_GONE;
    });
  };
  return End(context, options,
             Await(context, *calls, options.wait_seconds, StrCat("evict ", options.server),
                   /*may_end=*/false, is_done),
             StrCat(options.server, " is to be given up"),
             StrCat(options.server, " is fenced; others take its cells over"));
}

void AddWait(CLI::App& verb, Options& options) {
  verb.add_option("--wait", options.wait_seconds, "until it is done, 0: not at all (default: 120)")
      ->type_name("SECONDS")
      ->check(AnyNumber(0, kWaitSecondsMax));
}

}  // namespace

void AddCluster(CLI::App& app, Context& context, Action& action) {
  CLI::App* cluster =
      app.add_subcommand("cluster", "Show the servers that share a root; move and drain cells");
  cluster->require_subcommand(1);
  cluster->footer(
      "status needs the right operate, the others operate and delete.\n"
      "A cell is a directory that one server serves. Any server of the cluster may be\n"
      "asked. Writers go on: they are sent to the new server, and lose nothing.");

  CLI::App* status = cluster->add_subcommand(
      "status", "All servers and cells; ends with 9 if a cell or a server is lost");
  OnVerb(*status, context, action, std::make_shared<Options>(), RunStatus);

  auto moved = std::make_shared<Options>();
  CLI::App* move = cluster->add_subcommand("move", "Hand a cell over to another server, in order");
  move->add_option("CELL", moved->cell, "the cell's directory; / for the root")->required();
  move->add_option("SERVER", moved->server, "the `node` of the server that gets it")->required();
  AddWait(*move, *moved);
  OnVerb(*move, context, action, moved, RunMove);

  auto drained = std::make_shared<Options>();
  CLI::App* drain = cluster->add_subcommand(
      "drain", "Hand all cells of a server over, one after the other, in order");
  drain->add_option("SERVER", drained->server, "the server's `node`")->required();
  CLI::Option* exit = drain->add_flag("--exit", drained->exit, "the server then ends");
  drain->add_flag("--undo", drained->undo, "it takes cells again; so does its next start")
      ->excludes(exit);
  AddWait(*drain, *drained);
  OnVerb(*drain, context, action, drained, RunDrain);

  auto evicted = std::make_shared<Options>();
  CLI::App* evict = cluster->add_subcommand(
      "evict", "Give a server up that is dead or hangs: fence it, recover its cells");
  evict->add_option("SERVER", evicted->server, "the server's `node`")->required();
  evict->add_flag("-y,--yes", evicted->yes, "ask no question");
  evict->add_flag("--force", evicted->force, "also if it is alive");
  AddWait(*evict, *evicted);
  OnVerb(*evict, context, action, evicted, RunEvict);
}

}  // namespace h5mirror::tools
