// A server: one life after the other.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_SERVER_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_SERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "tests/cluster_sim/life.h"

namespace h5mirror::cluster_sim {

// Not thread-safe; call it only from outside of the server's own fibers.
class Server {
 public:
  // `clock_rate`: seconds of its clock in one second.
  Server(Site& site, std::string id, double clock_rate)
      : site_(site), id_(std::move(id)), clock_rate_(clock_rate) {}
  ~Server() { Kill(); }
  Server(const Server&) = delete;

  // Does nothing if it runs.
  void Start();
  void Kill();
  // Kills the life. After a life that was killed so, or that ended by itself, the next one starts,
  // as with systemd.
  void KillAndRestart();
  void Heal();

  bool is_up() const { return life_ != nullptr; }
  // Only while it is up.
  Life& life() { return *life_; }
  const std::string& id() const { return id_; }
  // No message from or to clients gets through.
  bool is_unreachable = false;

 private:
  void RestartLater();

  Site& site_;
  const std::string id_;
  const double clock_rate_;
  int lives_ = 0;
  std::shared_ptr<Life> life_;
};

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_SERVER_H_
