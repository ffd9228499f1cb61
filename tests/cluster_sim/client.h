// Clients of the cluster: they find the owner of a cell, follow redirects, and ask again.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_CLIENT_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cluster_sim/life.h"
#include "tests/cluster_sim/server.h"

namespace h5mirror::cluster_sim {

using Servers = std::vector<std::unique_ptr<Server>>;

// Not thread-safe. Its methods are for its own fiber.
class Client {
 public:
  Client(Site& site, Servers& servers) : site_(site), servers_(servers) {}
  // Must be dead: World::Kill(this).
  ~Client() = default;
  Client(const Client&) = delete;

  // Writes values to `object` until `stops` holds, and then one more. Repeats each value until it
  // or a later one is acked.
  void WriteUntil(const Object& object, const bool& stops);
  // Reads objects of `cells` again and again.
  void ReadUntil(const std::vector<std::string>& cells, const bool& stops);

 private:
  // The client's knowledge of a cell.
  struct Known {
    std::string owner;  // empty: none
    uint64_t epoch = 0;
  };

  // Asks one server, and follows its redirects. Unset: every answer was "wait", or none came.
  std::optional<Answer> Ask(const Object& object, uint64_t value);
  // Sends one message to a server. Unset: no answer came in time.
  std::optional<Answer> Call(Server& server, const Object& object, uint64_t value,
                             uint64_t seen_epoch);
  void Deliver(Server& server, const Request& request);
  Server& AnyServer();
  Server* FindServer(const std::string& id);
  absl::Duration Travel();

  Site& site_;
  Servers& servers_;
  std::map<std::string, Known> known_;  // by cell
};

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_CLIENT_H_
