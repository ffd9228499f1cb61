#include "tests/cluster_sim/client.h"

#include <utility>

#include "base/strings.h"

namespace h5mirror::cluster_sim {
namespace {

constexpr absl::Duration kAnswerMax = absl::Seconds(2);

}  // namespace

Server& Client::AnyServer() { return *servers_[site_.world.Random(servers_.size())]; }

Server* Client::FindServer(const std::string& id) {
  for (const auto& server : servers_) {
    if (server->id() == id) return server.get();
  }
  return nullptr;
}

absl::Duration Client::Travel() {
  sim::World& world = site_.world;
  if (world.Chance(site_.weather.late)) {
    return world.Between(absl::Milliseconds(100), absl::Seconds(10));
  }
  return world.Between(absl::Microseconds(100), absl::Milliseconds(4));
}

void Client::Deliver(Server& server, const Request& request) {
  if (site_.world.Chance(site_.weather.lost)) return;
  site_.world.After(Travel(), [&server, request] {
    if (server.is_up() && !server.is_unreachable) server.life().Deliver(request);
  });
}

std::optional<Answer> Client::Call(Server& server, const Object& object, uint64_t value,
                                   uint64_t seen_epoch) {
  const auto slot = std::make_shared<std::optional<Answer>>();
  sim::World& world = site_.world;
  const absl::Duration back = Travel();
  const bool is_answer_lost = world.Chance(site_.weather.lost);
  Request request = {object, value, seen_epoch,
                     [&world, &server, slot, back, is_answer_lost](const Answer& answer) {
                       if (is_answer_lost || server.is_unreachable) return;
                       world.After(back, [slot, answer] { *slot = answer; });
                     }};
  Deliver(server, request);
  // The network may bring a message a second time.
  if (world.Chance(site_.weather.late)) Deliver(server, request);
  world.Wait([slot] { return slot->has_value(); }, world.Now() + kAnswerMax);
  return *slot;
}

std::optional<Answer> Client::Ask(const Object& object, uint64_t value) {
  Known& known = known_[object.cell];
  Server* server = known.owner.empty() ? &AnyServer() : FindServer(known.owner);
  for (int hop = 1;; ++hop) {
    const auto answer = Call(*server, object, value, known.epoch);
    // Any other server can name the new owner; the epoch is not forgotten.
    if (!answer.has_value() || answer->kind == AnswerKind::kWait) {
      known.owner.clear();
      return std::nullopt;
    }
    if (answer->kind == AnswerKind::kDone) {
      known = {server->id(), answer->epoch};
      return answer;
    }
    site_.golden.Redirected(object.cell, known.epoch, answer->epoch, hop);
    known = {answer->owner, answer->epoch};
    server = FindServer(answer->owner);
    if (server == nullptr) {
      site_.world.Fail(StrCat("a redirect to ", answer->owner, ", which is no server"));
      return std::nullopt;
    }
  }
}

void Client::WriteUntil(const Object& object, const bool& stops) {
  sim::World& world = site_.world;
  uint64_t value = 0;
  for (bool is_last = false; !is_last;) {
    is_last = stops;
    site_.golden.Sent(object, ++value);
    while (!Ask(object, value).has_value()) {
      world.Sleep(world.Between(absl::Milliseconds(20), absl::Milliseconds(300)));
      // The program has gone on, and its next value includes the earlier one.
      if (world.Chance(0.3)) site_.golden.Sent(object, ++value);
    }
    world.Sleep(world.Between(absl::Milliseconds(5), absl::Milliseconds(250)));
  }
}

void Client::ReadUntil(const std::vector<std::string>& cells, const bool& stops) {
  sim::World& world = site_.world;
  while (!stops) {
    const Object object = {cells[world.Random(cells.size())],
                           static_cast<int>(world.Random(kObjects))};
    // Like a program that has just started.
    if (world.Chance(0.3)) known_.clear();
    const uint64_t acked = site_.golden.acked(object);
    const auto answer = Ask(object, 0);
    if (answer.has_value()) site_.golden.Read(object, acked, answer->value);
    world.Sleep(world.Between(absl::Milliseconds(5), absl::Milliseconds(150)));
  }
}

}  // namespace h5mirror::cluster_sim
