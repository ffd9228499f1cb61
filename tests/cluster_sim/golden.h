// The promises made to clients, and the rules that must hold.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_GOLDEN_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_GOLDEN_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/sim/world.h"

namespace h5mirror::cluster_sim {

// A part of a cell, with one writer. Its value only rises.
struct Object {
  std::string cell;
  int number = 0;

  auto operator<=>(const Object&) const = default;
  std::string ToString() const;
};

// Not thread-safe. Fails the world's run if a promise is broken.
class Golden {
 public:
  explicit Golden(sim::World& world) : world_(world) {}

  // A client will send it.
  void Sent(const Object& object, uint64_t value);
  // A server sends the ack.
  void Acked(const Object& object, uint64_t value);
  uint64_t acked(const Object& object) const;

  // A session that owns the cell at `epoch` has found this value on the disk.
  void Found(const Object& object, uint64_t epoch, uint64_t value);
  // A write of the owner at `epoch` lands.
  void Landed(const Object& object, uint64_t epoch, uint64_t before, uint64_t value);
  // A client is told `value`; when it asked, `acked` had been acked.
  void Read(const Object& object, uint64_t acked, uint64_t value);
  // A life of a server begins to open a cell.
  void Owns(const std::string& cell, uint64_t epoch, const std::string& life);
  // A client that knew `seen` is sent on, for the `hop`th time in a row.
  void Redirected(const std::string& cell, uint64_t seen, uint64_t epoch, int hop);

 private:
  sim::World& world_;
  std::map<Object, uint64_t> sent_, acked_;
  std::map<Object, uint64_t> touched_;  // the highest epoch that read or wrote it
  std::map<std::pair<std::string, uint64_t>, std::string> owners_;
};

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_GOLDEN_H_
