// The cells of a server as a test says, without a registry.
#ifndef H5MIRROR_SERVER_TESTING_FAKE_OWNERSHIP_H_
#define H5MIRROR_SERVER_TESTING_FAKE_OWNERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/claims.h"
#include "server/cluster/ownership.h"

namespace h5mirror::server {

// Thread-safe.
class FakeOwnership final : public Ownership {
 public:
  void SetRoute(const std::string& cell, cluster::Route route) {
    absl::MutexLock lock(&mutex_);
    routes_[cell] = std::move(route);
  }
  void Serve(const std::string& cell, uint64_t epoch) {
    SetRoute(cell, {cluster::RouteKind::kServe, epoch, "a", ""});
  }
  // Sets the guard's answers from now on.
  void SetGuard(absl::Status check, absl::Status before_ack) {
    absl::MutexLock lock(&mutex_);
    check_ = std::move(check);
    before_ack_ = std::move(before_ack);
  }
  // While `is_held`, BeforeAck() does not end.
  void Hold(bool is_held) {
    absl::MutexLock lock(&mutex_);
    is_held_ = is_held;
  }
  int asked() const {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }
  // Waits until BeforeAck() was called `count` times.
  void AwaitAsked(int count) {
    const auto is_asked = [this, count]()
                              ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return asked_ >= count; };
    absl::MutexLock lock(&mutex_, absl::Condition(&is_asked));
  }

  std::optional<std::string> CellOf(std::string_view path) override {
    absl::MutexLock lock(&mutex_);
    for (const auto& [cell, route] : routes_) {
      if (cell.empty() || path == cell || path.starts_with(cell + "/")) return cell;
    }
    return std::nullopt;
  }
  cluster::Route Find(std::string_view cell) override {
    absl::MutexLock lock(&mutex_);
    const auto found = routes_.find(std::string(cell));
    return found == routes_.end() ? cluster::Route() : found->second;
  }
  cluster::Route FindSent(std::string_view cell, uint64_t seen_epoch) override {
    cluster::Route route = Find(cell);
    if (route.epoch <= seen_epoch && route.kind == cluster::RouteKind::kRedirect) {
      route.kind = cluster::RouteKind::kWait;
    }
    return route;
  }
  absl::StatusOr<std::map<std::string, cluster::Route>> RoutesBelow(
      std::string_view directory) override {
    absl::MutexLock lock(&mutex_);
    std::map<std::string, cluster::Route> routes;
    for (const auto& [cell, route] : routes_) {
      if (cluster::Overlap(cell, directory)) routes[cell] = route;
    }
    return routes;
  }
  const std::string& node() override { return node_; }
  absl::Status Check(std::string_view, uint64_t) override {
    absl::MutexLock lock(&mutex_);
    return check_;
  }
  absl::Status BeforeAck(std::string_view, uint64_t) override {
    absl::MutexLock lock(&mutex_);
    ++asked_;
    mutex_.Await(absl::Condition(
        +[](bool* is_held) { return !*is_held; }, &is_held_));
    return before_ack_;
  }

 private:
  const std::string node_ = "a";
  mutable absl::Mutex mutex_;
  std::map<std::string, cluster::Route> routes_ ABSL_GUARDED_BY(mutex_);
  absl::Status check_ ABSL_GUARDED_BY(mutex_);
  absl::Status before_ack_ ABSL_GUARDED_BY(mutex_);
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_FAKE_OWNERSHIP_H_
