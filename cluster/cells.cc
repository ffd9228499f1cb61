#include "cluster/cells.h"

#include <tuple>
#include <utility>

#include "cluster/claims.h"

namespace h5mirror::cluster {

void Cells::SetOwnEpoch(uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  own_epoch_ = epoch;
}

void Cells::Update(const ClusterView& view) {
  absl::MutexLock lock(&mutex_);
  has_looked_ = true;
  for (const auto& [id, server] : view.servers) {
    // Of changes that others make, which keep the seq, each leads to a later state.
    const auto age = [](const ServerRecord& each) {
      return std::tuple(each.epoch, each.seq, each.state);
    };
    ServerRecord& known = servers_[id];
    if (age(server) >= age(known)) known = server;
  }
  for (const auto& [cell, record] : view.cells) {
    CellRecord& known = cells_[cell];
    if (record.seq >= known.seq) known = record;
  }
}

void Cells::Put(const std::string& cell, const CellRecord& record) {
  absl::MutexLock lock(&mutex_);
  CellRecord& known = cells_[cell];
  if (record.seq >= known.seq) known = record;
}

std::optional<std::string> Cells::CellOf(std::string_view path) const {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    if (cells_.contains(path)) return std::string(path);
    if (path.empty()) return std::nullopt;
    const size_t slash = path.rfind('/');
    path = path.substr(0, slash == path.npos ? 0 : slash);
  }
}

std::map<std::string, Route> Cells::RoutesBelow(std::string_view directory) const {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, Route> routes;
  for (const auto& [cell, record] : cells_) {
    if (Overlap(cell, directory)) routes[cell] = RouteOf(record, 0);
  }
  return routes;
}

Route Cells::RouteOf(const CellRecord& record, uint64_t seen_epoch) const {
  if (record.epoch < seen_epoch) return {RouteKind::kReadAgain, 0, "", ""};
  const Route wait = {RouteKind::kWait, record.epoch, "", ""};
  if (record.state != CellState::kServed) return wait;
  if (record.owner == self_id_ && record.owner_epoch == own_epoch_) {
    return {RouteKind::kServe, record.epoch, self_id_, ""};
  }
  // To be sent again to the server that has sent it here would not end.
  if (record.epoch == seen_epoch) return wait;
  const auto owner = servers_.find(record.owner);
  if (owner == servers_.end() || owner->second.epoch != record.owner_epoch ||
      !IsAlive(owner->second.state)) {
    return wait;
  }
  return {RouteKind::kRedirect, record.epoch, record.owner, owner->second.listen,
          owner->second.http};
}

Route Cells::Resolve(std::string_view cell, uint64_t seen_epoch) const {
  absl::MutexLock lock(&mutex_);
  const auto found = cells_.find(cell);
  if (found == cells_.end()) return {};
  return RouteOf(found->second, seen_epoch);
}

}  // namespace h5mirror::cluster
