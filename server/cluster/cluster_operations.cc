// The operators' view of a cluster, and their requests to it.
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cluster/wishes.h"
#include "server/cluster/cluster.h"

namespace h5mirror::server {
namespace {

absl::Status NotJoined() {
  return absl::UnavailableError("this server has not joined its cluster yet");
}

}  // namespace

absl::StatusOr<ClusterOperations::State> Cluster::Look() {
  cluster::Node* const node = joined_;
  if (node == nullptr) return NotJoined();
  State state;
  state.node = settings_.node;
  H5M_ASSIGN_OR_RETURN(state.view, cluster::ReadCluster(parts_.registry->registry()));
  state.beat_ages = node->BeatAges(state.view);
  state.beat_ages[settings_.node] = node->OwnBeatAge();
  return state;
}

absl::StatusOr<std::map<std::string, cluster::Route>> Cluster::RoutesBelow(
    std::string_view directory) {
  cluster::Node* const node = joined_;
  if (node == nullptr || !node->cells().has_looked()) return NotJoined();
  return node->cells().RoutesBelow(directory);
}

absl::StatusOr<uint64_t> Cluster::Move(const std::string& cell, const std::string& to) {
  if (joined_ == nullptr) return NotJoined();
  return cluster::AskToMove(parts_.registry->registry(), cell, to);
}

absl::Status Cluster::Drain(const std::string& id, cluster::DrainWish wish) {
  if (joined_ == nullptr) return NotJoined();
  return cluster::AskToDrain(parts_.registry->registry(), id, wish);
}

absl::Status Cluster::Evict(const std::string& id, bool force) {
  cluster::Node* const node = joined_;
  if (node == nullptr) return NotJoined();
  H5M_ASSIGN_OR_RETURN(const cluster::ClusterView view,
                       cluster::ReadCluster(parts_.registry->registry()));
  H5M_ASSIGN_OR_RETURN(const cluster::ServerRecord record, cluster::ServerOf(view, id));
  if (record.state == cluster::ServerState::kDead) return absl::OkStatus();
  if (!cluster::IsAlive(record.state)) {
    return absl::FailedPreconditionError(
        StrCat("the server ", id, " is ", cluster::NameOf(record.state), " already"));
  }
  if (id == settings_.node) {
    return absl::FailedPreconditionError(
        StrCat(id, " is the server that was asked: ask another one, or drain it"));
  }
  const auto ages = node->BeatAges(view);
  const auto age = ages.find(id);
  // For so long after a beat it may answer.
  const bool is_beating = age == ages.end() || age->second < settings_.lease;
  if (is_beating && !force) {
    return absl::FailedPreconditionError(StrCat(
        "the server ", id, " is alive: ",
        age == ages.end() ? std::string("it has just joined, or beaten")
                          : StrCat("its last beat was seen ", HumanDuration(age->second), " ago"),
        "; drain it, and nothing has to be recovered"));
  }
  using Eviction = cluster::Node::Eviction;
  node->Evict(view, id, force ? Eviction::kForced : Eviction::kIfSilent);
  return absl::OkStatus();
}

cluster::NodeCounts Cluster::Counts() {
  cluster::Node* const node = joined_;
  return node == nullptr ? cluster::NodeCounts() : node->counts();
}

absl::Duration Cluster::OwnBeatAge() {
  cluster::Node* const node = joined_;
  return node == nullptr ? absl::InfiniteDuration() : node->OwnBeatAge();
}

void Cluster::SetListener(Listener listener) {
  absl::MutexLock lock(&listener_mutex_);
  listener_ = std::move(listener);
}

void Cluster::Tell(const cluster::NodeEvent& event) {
  absl::MutexLock lock(&listener_mutex_);
  if (listener_ != nullptr) listener_(event);
}

}  // namespace h5mirror::server
