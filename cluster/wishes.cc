#include "cluster/wishes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {
namespace {

// Each costs a change that another one made meanwhile.
constexpr int kTriesMax = 20;

template <typename Map>
std::string NamesOf(const Map& map) {
  std::string names;
  for (const auto& [name, record] : map) {
    StrAppend(&names, names.empty() ? "" : ", ", name.empty() ? "the root" : name);
  }
  return names.empty() ? "none" : names;
}

absl::StatusOr<CellRecord> CellOf(const ClusterView& view, const std::string& cell) {
  if (const CellRecord* const found = view.FindCell(cell); found != nullptr) return *found;
  return absl::NotFoundError(StrCat(cell.empty() ? "the root" : StrCat("\"", cell, "\""),
                                    " is no cell of this cluster; its cells are ",
                                    NamesOf(view.cells)));
}

// Repeats `attempt` while others change the registry meanwhile.
template <typename Attempt>
absl::Status Repeat(Attempt attempt) {
  absl::Status status;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    status = attempt();
    if (!absl::IsAborted(status)) return status;
  }
  return absl::UnavailableError(
      StrCat("the registry changes all the time: ", ToStd(status.message())));
}

absl::Status MoveOnce(Registry& registry, const std::string& cell, const std::string& to,
                      uint64_t* epoch) {
  H5M_ASSIGN_OR_RETURN(const ClusterView view, ReadCluster(registry));
  H5M_ASSIGN_OR_RETURN(const CellRecord record, CellOf(view, cell));
  H5M_ASSIGN_OR_RETURN(const ServerRecord server, ServerOf(view, to));
  if (server.state != ServerState::kUp) {
    return absl::FailedPreconditionError(
        StrCat("the server ", to, " is ", NameOf(server.state), ": it takes no cell"));
  }
  if (record.state != CellState::kServed) {
    return absl::FailedPreconditionError(
        StrCat("no server serves ", cell.empty() ? "the root" : StrCat("the cell \"", cell, "\""),
               " at the moment: h5mirror cluster status tells why; ask again when one does"));
  }
  const bool is_there = record.owner == to;
  *epoch = is_there ? 0 : record.epoch;
  const std::string name = MoveName(cell);
  const std::string text = Encode(MoveRecord{to, record.epoch, server.epoch});
  const auto found = TextOf(view.texts, name);
  // Where it is there, an earlier wish for another server must not take it away later.
  if (found == text || (is_there && !found.has_value())) return absl::OkStatus();
  return registry.CompareAndSet(
      {{CellName(cell), TextOf(view.texts, CellName(cell))}, {name, found}}, {{name, text}});
}

absl::Status DrainOnce(Registry& registry, const std::string& id, DrainWish wish) {
  H5M_ASSIGN_OR_RETURN(const ClusterView view, ReadCluster(registry));
  H5M_ASSIGN_OR_RETURN(const ServerRecord server, ServerOf(view, id));
  if (!IsAlive(server.state)) {
    return absl::FailedPreconditionError(
        StrCat("the server ", id, " is ", NameOf(server.state), ": it serves no cell"));
  }
  const auto other = std::find_if(view.servers.begin(), view.servers.end(), [&](const auto& each) {
    return each.first != id && each.second.state == ServerState::kUp &&
           view.WishFor(each.first) == DrainWish::kNone;
  });
  if (wish != DrainWish::kNone && other == view.servers.end()) {
    return absl::FailedPreconditionError(
        StrCat("no other server than ", id, " is up and takes cells: nobody could take its cells"));
  }
  const std::string name = DrainName(id);
  const std::string text = Encode(DrainRecord{server.epoch, wish});
  const auto found = TextOf(view.texts, name);
  if (found == text || (!found.has_value() && wish == DrainWish::kNone)) return absl::OkStatus();
  // The request is for this life of the server. Its record may change meanwhile; its epoch decides.
  std::vector<Expectation> expected = {{name, found}};
  if (wish != DrainWish::kNone) {
    // Expects the other server's texts to be unchanged. Two drains at once would leave no server
    // for the cells.
    for (const std::string& each : {ServerName(other->first), DrainName(other->first)}) {
      expected.push_back({each, TextOf(view.texts, each)});
    }
  }
  return registry.CompareAndSet(expected, {{name, text}});
}

}  // namespace

std::string NameOf(ServerState state) {
  switch (state) {
    case ServerState::kUp:
      return "up";
    case ServerState::kDraining:
      return "draining";
    case ServerState::kGone:
      return "gone";
    case ServerState::kDead:
      return "dead";
    case ServerState::kFenced:
      return "fenced";
  }
  return "unknown";
}

absl::StatusOr<ClusterView> ReadCluster(Registry& registry) {
  H5M_ASSIGN_OR_RETURN(RegistryView texts, registry.ReadAll());
  return DecodeView(std::move(texts));
}

absl::StatusOr<ServerRecord> ServerOf(const ClusterView& view, const std::string& id) {
  if (const ServerRecord* const found = view.FindServer(id); found != nullptr) return *found;
  return absl::NotFoundError(
      StrCat("\"", id, "\" is no server of this cluster; its servers are ", NamesOf(view.servers)));
}

absl::StatusOr<uint64_t> AskToMove(Registry& registry, const std::string& cell,
                                   const std::string& to) {
  uint64_t epoch = 0;
  H5M_RETURN_IF_ERROR(Repeat([&] { return MoveOnce(registry, cell, to, &epoch); }));
  return epoch;
}

absl::Status AskToDrain(Registry& registry, const std::string& id, DrainWish wish) {
  return Repeat([&] { return DrainOnce(registry, id, wish); });
}

}  // namespace h5mirror::cluster
