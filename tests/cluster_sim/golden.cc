#include "tests/cluster_sim/golden.h"

#include <algorithm>

#include "base/strings.h"

namespace h5mirror::cluster_sim {
namespace {

// More owners than a cell can get during one call.
constexpr int kHopsMax = 8;

uint64_t Of(const std::map<Object, uint64_t>& values, const Object& object) {
  const auto found = values.find(object);
  return found == values.end() ? 0 : found->second;
}

void Raise(std::map<Object, uint64_t>& values, const Object& object, uint64_t value) {
  uint64_t& known = values[object];
  known = std::max(known, value);
}

}  // namespace

std::string Object::ToString() const { return StrCat(cell, "/", number); }

void Golden::Sent(const Object& object, uint64_t value) { Raise(sent_, object, value); }

void Golden::Acked(const Object& object, uint64_t value) {
  world_.Trace("acked ", object.ToString(), " = ", value);
  Raise(acked_, object, value);
}

uint64_t Golden::acked(const Object& object) const { return Of(acked_, object); }

void Golden::Found(const Object& object, uint64_t epoch, uint64_t value) {
  Raise(touched_, object, epoch);
  if (value >= acked(object)) return;
  world_.Fail(StrCat("acked and lost: ", object.ToString(), " has ", value, ", and ", acked(object),
                     " was acked"));
}

void Golden::Landed(const Object& object, uint64_t epoch, uint64_t before, uint64_t value) {
  if (epoch < Of(touched_, object)) {
    return world_.Fail(StrCat("a write of a former owner lands: epoch ", epoch, " of ",
                              object.ToString(), ", which epoch ", Of(touched_, object),
                              " has touched"));
  }
  Raise(touched_, object, epoch);
  if (value < before) {
    world_.Fail(StrCat(object.ToString(), " goes back from ", before, " to ", value));
  }
}

void Golden::Read(const Object& object, uint64_t acked, uint64_t value) {
  if (value < acked) {
    world_.Fail(StrCat("a stale read: ", object.ToString(), " is told as ", value, ", and ", acked,
                       " was acked before it was asked for"));
  }
  if (value > Of(sent_, object)) {
    world_.Fail(StrCat(object.ToString(), " is told as ", value, ", which nobody has sent"));
  }
}

void Golden::Owns(const std::string& cell, uint64_t epoch, const std::string& life) {
  const auto [found, is_new] = owners_.try_emplace({cell, epoch}, life);
  if (is_new || found->second == life) return;
  world_.Fail(StrCat("epoch ", epoch, " of the cell ", cell, " is given twice: to ", found->second,
                     " and to ", life));
}

void Golden::Redirected(const std::string& cell, uint64_t seen, uint64_t epoch, int hop) {
  if (epoch > seen && hop <= kHopsMax) return;
  world_.Fail(StrCat("redirects do not end: number ", hop, " for the cell ", cell,
                     " leads from epoch ", seen, " to ", epoch));
}

}  // namespace h5mirror::cluster_sim
