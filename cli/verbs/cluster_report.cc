#include "cli/verbs/cluster_report.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/strings.h"

namespace h5mirror::tools {
namespace {

using View = v1::GetClusterResponse;

// "up" of "SERVER_STATE_UP".
std::string LowerRest(const std::string& name, std::string_view prefix) {
  std::string word = name.substr(std::min(prefix.size(), name.size()));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

const v1::ClusterServer* FindServer(const View& view, const std::string& id) {
  const auto found = std::find_if(view.servers().begin(), view.servers().end(),
                                  [&id](const auto& each) { return each.id() == id; });
  return found == view.servers().end() ? nullptr : &*found;
}

// Empty: it is served.
std::string ProblemOf(const View& view, const v1::ClusterCell& cell) {
  const std::string name = NameOfCell(cell.directory());
  if (cell.state() == v1::CELL_STATE_SERVED) {
    const v1::ClusterServer* const owner = FindServer(view, cell.owner());
    if (owner != nullptr && IsAlive(*owner)) return "";
    return StrCat("the server of ", name, ", ", cell.owner(), ", is lost");
  }
  return StrCat(name, " is ", WordOf(cell.state()),
                ": no server serves it; where this lasts, the logs of the servers that are up say "
                "why it cannot be opened");
}

// Clients that a server sends to one of them may reach the other one.
void AddTwins(const View& view, std::vector<std::string>& problems) {
  std::map<std::string, std::string> ids;
  for (const v1::ClusterServer& server : view.servers()) {
    if (!IsAlive(server)) continue;
    const auto [known, is_new] = ids.emplace(server.address(), server.id());
    if (is_new) continue;
    problems.push_back(
        StrCat(known->second, " and ", server.id(), " have one address, ", server.address(),
               ": give each its own `address`; or one is a former name of the other, ",
               "and is given up within seconds"));
  }
}

}  // namespace

std::string CellOfArgument(std::string_view typed) {
  while (typed.ends_with('/')) typed.remove_suffix(1);
  return std::string(typed);
}

std::string NameOfCell(const std::string& directory) {
  return directory.empty() ? "(the root)" : directory;
}

std::string WordOf(v1::ServerState state) {
  return LowerRest(v1::ServerState_Name(state), "SERVER_STATE_");
}

std::string WordOf(v1::CellState state) {
  return LowerRest(v1::CellState_Name(state), "CELL_STATE_");
}

bool IsAlive(const v1::ClusterServer& server) {
  return server.state() == v1::SERVER_STATE_UP || server.state() == v1::SERVER_STATE_DRAINING;
}

std::string ServerOf(const v1::ClusterCell& cell) {
  return cell.state() == v1::CELL_STATE_FREE ? "" : cell.owner();
}

std::map<std::string, int> CellCounts(const View& view) {
  std::map<std::string, int> counts;
  for (const v1::ClusterCell& cell : view.cells()) {
    if (const std::string server = ServerOf(cell); !server.empty()) ++counts[server];
  }
  return counts;
}

std::vector<std::string> ProblemsOf(const View& view) {
  std::vector<std::string> problems;
  for (const v1::ClusterServer& server : view.servers()) {
    if (server.state() != v1::SERVER_STATE_DEAD) continue;
    problems.push_back(StrCat("the server ", server.id(),
                              " is lost, and not fenced yet; where this lasts, the logs of the "
                              "other servers say why"));
  }
  for (const v1::ClusterCell& cell : view.cells()) {
    if (std::string problem = ProblemOf(view, cell); !problem.empty()) {
      problems.push_back(std::move(problem));
    }
  }
  AddTwins(view, problems);
  return problems;
}

std::string AddressOfAnother(const View& view, const std::string& id) {
  for (const v1::ClusterServer& server : view.servers()) {
    if (server.id() != id && IsAlive(server)) return server.address();
  }
  return "";
}

Json ToJson(const View& view, const std::vector<std::string>& problems) {
  const auto text = [](const std::string& value) {
    return value.empty() ? Json(nullptr) : Json(value);
  };
  std::map<std::string, int> counts = CellCounts(view);
  Json servers = Json::array();
  for (const v1::ClusterServer& server : view.servers()) {
    servers.push_back(
        {{"id", server.id()},
         {"address", server.address()},
         {"http", text(server.http())},
         {"state", WordOf(server.state())},
         {"version", text(server.version())},
         {"epoch", server.epoch()},
         {"beat_age_seconds", server.has_beat_age_ms()
                                  ? Json(static_cast<double>(server.beat_age_ms()) / 1000)
                                  : Json(nullptr)},
         {"cells", counts[server.id()]}});
  }
  Json cells = Json::array();
  for (const v1::ClusterCell& cell : view.cells()) {
    cells.push_back({{"cell", cell.directory()},
                     {"state", WordOf(cell.state())},
                     {"server", text(ServerOf(cell))},
                     {"epoch", cell.epoch()},
                     {"moves_to", text(cell.moves_to())}});
  }
  return {{"node", view.node()},
          {"degraded", !problems.empty()},
          {"problems", problems},
          {"servers", std::move(servers)},
          {"cells", std::move(cells)}};
}

}  // namespace h5mirror::tools
