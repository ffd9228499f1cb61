#include "server/open_cluster.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "ceph/load_module.h"
#include "cluster/addresses.h"
#include "server/cluster/archive_memory.h"
#include "server/cluster/prepare_registry.h"
#include "server/open_archive.h"
#include "server/settings/root_fencing.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// The time that a cell that is given away has to apply what is durable.
constexpr absl::Duration kCloseTimeout = absl::Seconds(10);

// Takes a mount that is gone out of the server's record.
void DropMount(Cluster& cluster, const std::string& session,
               const std::vector<std::string>& addresses, const std::atomic<bool>& is_fenced) {
  // A fenced mount stays in the record: a write of it may still be in flight.
  if (is_fenced) return;
  const absl::Status dropped = cluster.DropMount(session, addresses);
  if (!dropped.ok()) {
    spdlog::info("CephFS: session {} stays in the registry for now: {}", session,
                 ToStd(dropped.message()));
  }
}

// Sets the archive of a cell whose root is options.root, and its part of the server's.
absl::Status SetArchive(const archive::RootArchive* of_server, const std::string& cell, Env& env,
                        store::StoreOptions* options,
                        std::shared_ptr<archive::RootArchive>* archive) {
  if (of_server == nullptr) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(*archive, OpenCellArchive(*of_server, cell, env, options->root));
  options->archive = *archive;
  return absl::OkStatus();
}

// A store that is opened by a mount of its own: the mount knows the newest map of the OSDs, so that
// each object that it touches refuses a fenced server from then on.
absl::StatusOr<OpenedStore> OpenInCeph(const Config& config, store::StoreOptions options,
                                       const archive::RootArchive* of_server,
                                       const std::string& cell, Cluster& cluster,
                                       ceph::FencedListener on_fenced,
                                       std::shared_ptr<const std::atomic<bool>> is_fenced) {
  H5M_ASSIGN_OR_RETURN(const ceph::RootUrl url, ceph::ParseRootUrl(config.root.native()));
  H5M_ASSIGN_OR_RETURN(auto mounted, ceph::Mount(url, std::move(on_fenced)));
  const ceph::SessionIdentity session = mounted->Session();
  const auto addresses = cluster::SplitAddresses(session.addresses);
  if (addresses.empty()) {
    return absl::UnavailableError("Ceph does not tell a mount's address, by which it is fenced");
  }
  options.root = cell.empty() ? config.root : std::filesystem::path("/" + cell);
  // Reads only: a cell without its directory leaves nothing in the record.
  H5M_RETURN_IF_ERROR(mounted->OpenTree(options.root).status());
  // Before it writes anything.
  absl::Status failed = cluster.AddMount(session.uuid, addresses);
  std::shared_ptr<archive::RootArchive> archive;
  if (failed.ok()) failed = SetArchive(of_server, cell, *mounted, &options, &archive);
  if (failed.ok()) {
    spdlog::info("CephFS: {} for the cell \"{}\"", mounted->SessionName(), cell);
    auto store = store::Store::Open(*mounted, options);
    if (store.ok()) {
      return OpenedStore{std::move(mounted), *std::move(store),
                         [=, &cluster] { DropMount(cluster, session.uuid, addresses, *is_fenced); },
                         std::move(archive)};
    }
    failed = store.status();
  }
  // It keeps its owner by the mount.
  options.archive.reset();
  archive.reset();
  mounted.reset();
  DropMount(cluster, session.uuid, addresses, *is_fenced);
  return failed;
}

absl::StatusOr<OpenedStore> OpenHere(const Config& config, store::StoreOptions options,
                                     const archive::RootArchive* of_server,
                                     const std::string& cell) {
  options.root = config.root / cell;
  std::shared_ptr<archive::RootArchive> archive;
  H5M_RETURN_IF_ERROR(SetArchive(of_server, cell, Env::Posix(), &options, &archive));
  H5M_ASSIGN_OR_RETURN(auto store, store::Store::Open(Env::Posix(), options));
  return OpenedStore{nullptr, std::move(store), nullptr, std::move(archive)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> OpenCluster(
    const Config& config, const store::StoreOptions& options,
    std::shared_ptr<archive::RootArchive> archive, ceph::FencedListener on_fenced,
    std::function<void(const absl::Status& why)> on_lost) {
  const ClusterSettings& settings = *config.cluster;
  if (archive != nullptr) H5M_RETURN_IF_ERROR(CheckCellNames(settings.cells));
  const bool is_ceph = ceph::IsRootUrl(config.root.native());
  if (is_ceph) {
    H5M_RETURN_IF_ERROR(ceph::LoadModule().status());
  } else {
    H5M_RETURN_IF_ERROR(CheckRootFencing(config));
  }
  Cluster::Parts parts;
  H5M_ASSIGN_OR_RETURN(parts.registry, RegistryHolder::Open(config));
  H5M_RETURN_IF_ERROR(PrepareRegistry(parts.registry->registry(), settings, config.root));
  if (archive != nullptr) archive->SetCluster(ClusterMarkOf(config, parts.registry->registry()));
  store::StoreOptions of_cell = options;
  of_cell.memory_max_bytes /= settings.cells.size();
  // Set below: no cell is opened before Start().
  auto cluster_of_opener = std::make_shared<Cluster*>(nullptr);
  auto is_fenced = std::make_shared<std::atomic<bool>>(false);
  const ceph::FencedListener on_mount_fenced = [is_fenced, on_fenced](const std::string& why) {
    is_fenced->store(true);
    on_fenced(why);
  };
  parts.open = [config, of_cell, is_ceph, cluster_of_opener, on_mount_fenced, is_fenced,
                archive](const std::string& cell) -> absl::StatusOr<OpenedStore> {
    if (!is_ceph) return OpenHere(config, of_cell, archive.get(), cell);
    return OpenInCeph(config, of_cell, archive.get(), cell, **cluster_of_opener, on_mount_fenced,
                      is_fenced);
  };
  parts.root = config.root;
  parts.is_fenced = [is_fenced] { return is_fenced->load(); };
  parts.close_timeout = kCloseTimeout;
  parts.on_lost = std::move(on_lost);
  // As by a service manager: the calls end first, then the cells are given away.
  parts.on_exit_wanted = [] { kill(getpid(), SIGTERM); };
  parts.on_note = [](const std::string& line) { spdlog::info("cluster: {}", line); };
  auto cluster = std::make_unique<Cluster>(settings, std::move(parts));
  *cluster_of_opener = cluster.get();
  return cluster;
}

}  // namespace h5mirror::server
