// This server in its cluster: the registry, the protocol's node with its threads, and the stores of
// the cells that it owns (docs/design/049-cells.md).
#ifndef H5MIRROR_SERVER_CLUSTER_CLUSTER_H_
#define H5MIRROR_SERVER_CLUSTER_CLUSTER_H_

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/env.h"
#include "cluster/fencer.h"
#include "cluster/node.h"
#include "cluster/rados_api.h"
#include "cluster/registry.h"
#include "cluster/runner.h"
#include "server/cluster/cluster_store.h"
#include "server/cluster/operations.h"
#include "server/cluster/ownership.h"
#include "server/cluster/store_host.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Holds the registry, and the fence that keeps a lost server's writes off the root.
class RegistryHolder {
 public:
  // Errors: kInvalidArgument, kNotFound  no such directory, pool or configuration of Ceph.
  //         kFailedPrecondition          Ceph's module is not there.
  //         kUnavailable                 Ceph does not answer.
  // The message names the setting.
  static absl::StatusOr<std::unique_ptr<RegistryHolder>> Open(const Config& config);

  static std::unique_ptr<RegistryHolder> Of(std::unique_ptr<cluster::Registry> registry,
                                            std::unique_ptr<cluster::Fencer> fencer);

  cluster::Registry& registry() { return rados_ != nullptr ? rados_->registry() : *registry_; }
  cluster::Fencer& fencer() { return rados_ != nullptr ? rados_->fencer() : *fencer_; }
  // Of this process in Ceph, without those of its mounts.
  std::vector<std::string> Addresses() {
    return rados_ != nullptr ? rados_->Addresses() : std::vector<std::string>();
  }

 private:
  static absl::StatusOr<std::unique_ptr<RegistryHolder>> OpenUnnamed(const Config& config);

  std::unique_ptr<cluster::RadosCluster> rados_;  // null: the other two
  std::unique_ptr<cluster::Registry> registry_;
  std::unique_ptr<cluster::Fencer> fencer_;
};

// Thread-safe, but for Start() and the Drain() of its own.
class Cluster final : public Ownership, public ClusterOperations {
 public:
  struct Parts {
    std::unique_ptr<RegistryHolder> registry;
    StoreOpener open;
    // As in the configuration: kept in the registry behind the first open. Empty: it is not.
    std::filesystem::path root = {};
    // Whether a mount of this server has been fenced. Null: it has none.
    std::function<bool()> is_fenced;
    absl::Duration close_timeout;
    // Told once that others have taken over from this server, by any thread. Must end the process
    // at once.
    std::function<void(const absl::Status& why)> on_lost;
    std::function<void(const std::string& line)> on_note;
    // Told once, by any thread, that an operator wants this server to end in order. Null: it goes
    // on without cells.
    std::function<void()> on_exit_wanted = nullptr;
  };
  Cluster(const ClusterSettings& settings, Parts parts);
  // Without Drain() before, others will give this server up.
  ~Cluster() override;

  // Every call waits until Start().
  ClusterStore& store() { return store_; }

  // Joins, and begins to claim cells. This server's address for clients, and its URL for those of
  // HTTP; empty: it has none.
  void Start(const std::string& listen, const std::string& http = "");
  // Gives all cells away, in order, and leaves. For a server whose calls have ended. kUnavailable:
  // not within `timeout`; the process is to end, and others will fence it.
  absl::Status Drain(absl::Duration timeout);

  // Member::AddMount() and DropMount(); for the opener.
  absl::Status AddMount(const std::string& session, const std::vector<std::string>& addresses);
  absl::Status DropMount(const std::string& session, const std::vector<std::string>& addresses);

  bool has_looked() override;
  std::optional<std::string> CellOf(std::string_view path) override;
  cluster::Route Find(std::string_view cell) override;
  cluster::Route FindSent(std::string_view cell, uint64_t seen_epoch) override;
  const std::string& node() override { return settings_.node; }
  absl::Status Check(std::string_view cell, uint64_t epoch) override;
  absl::Status BeforeAck(std::string_view cell, uint64_t epoch) override;
  ClusterOperations* operations() override { return this; }

  // ---- ClusterOperations; cluster_operations.cc ----

  absl::StatusOr<State> Look() override;
  absl::StatusOr<std::map<std::string, cluster::Route>> RoutesBelow(
      std::string_view directory) override;
  absl::StatusOr<uint64_t> Move(const std::string& cell, const std::string& to) override;
  absl::Status Drain(const std::string& id, cluster::DrainWish wish) override;
  absl::Status Evict(const std::string& id, bool force) override;
  cluster::NodeCounts Counts() override;
  absl::Duration OwnBeatAge() override;
  void SetListener(Listener listener) override ABSL_LOCKS_EXCLUDED(listener_mutex_);

 private:
  void Tell(const cluster::NodeEvent& event) ABSL_LOCKS_EXCLUDED(listener_mutex_);
  absl::StatusOr<OpenedStore> OpenCellStore(const std::string& cell);
  // Closes `opened` again where the cluster has another root.
  absl::StatusOr<OpenedStore> OfThisRoot(OpenedStore opened);
  // True: this caller may have the registry read, and must report the end. No other caller waits
  // for it, or had it read within the last beat.
  bool MayAskAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  void HasAskedAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds the route to a cell that no read of the registry has shown yet.
  cluster::Route FindUnknown(cluster::Node& node, std::string_view cell)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const ClusterSettings settings_;
  Parts parts_;
  SystemClock clock_;
  ClusterStore store_;
  StoreHost host_;
  std::unique_ptr<cluster::Node> node_;
  std::atomic<cluster::Node*> joined_ = nullptr;  // the same, once it is there
  std::unique_ptr<cluster::Runner> runner_;

  // Held over a call of the listener.
  absl::Mutex listener_mutex_;
  Listener listener_ ABSL_GUARDED_BY(listener_mutex_);

  absl::Mutex mutex_;
  // The last read of the registry for an unknown cell: when it began, by the monotonic clock, and
  // what it said.
  absl::Duration asked_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  cluster::RouteKind asked_kind_ ABSL_GUARDED_BY(mutex_) = cluster::RouteKind::kWait;
  absl::Duration sent_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // of FindSent()
  bool is_asking_ ABSL_GUARDED_BY(mutex_) = false;  // likewise: one waits for the registry
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_CLUSTER_H_
