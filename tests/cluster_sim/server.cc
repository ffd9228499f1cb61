#include "tests/cluster_sim/server.h"

namespace h5mirror::cluster_sim {

void Server::Start() {
  if (is_up()) return;
  life_ = std::make_shared<Life>(site_, id_, ++lives_, clock_rate_, [this] { KillAndRestart(); });
  life_->Begin();
}

void Server::Kill() {
  // Messages on their way to it may keep it alive for longer.
  if (const auto life = std::exchange(life_, nullptr); life != nullptr) life->Kill();
}

void Server::RestartLater() {
  site_.world.After(site_.world.Between(absl::Milliseconds(100), absl::Seconds(8)),
                    [this] { Start(); });
}

void Server::KillAndRestart() {
  Kill();
  RestartLater();
}

void Server::Heal() {
  is_unreachable = false;
  if (!is_up()) return Start();
  life_->CutOff(false);
  life_->Continue();
}

}  // namespace h5mirror::cluster_sim
