#include "server/cluster/cluster.h"

#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/version.h"
#include "ceph/root_url.h"
#include "cluster/claims.h"
#include "cluster/file_registry.h"
#include "cluster/load_rados.h"
#include "cluster/records.h"
#include "server/cluster/prepare_registry.h"

namespace h5mirror::server {
namespace {

// Several servers on one machine and its own filesystem. The store's lock (flock) is the fence: a
// process that stands still keeps it, and a process that has ended writes nothing more. So a cell
// of a stopped server stays closed until that ends.
class LockFencer final : public cluster::Fencer {
 public:
  absl::Status Fence(const cluster::FenceTarget&) override { return absl::OkStatus(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<RegistryHolder>> RegistryHolder::Open(const Config& config) {
  const ClusterSettings& settings = *config.cluster;
  auto opened = OpenUnnamed(config);
  if (opened.ok()) return opened;
  return absl::Status(opened.status().code(),
                      StrCat(settings.source, ": [cluster]: registry = \"", settings.Registry(),
                             "\": ", ToStd(opened.status().message())));
}

absl::StatusOr<std::unique_ptr<RegistryHolder>> RegistryHolder::OpenUnnamed(const Config& config) {
  const ClusterSettings& settings = *config.cluster;
  auto holder = std::make_unique<RegistryHolder>();
  if (settings.kind == RegistryKind::kFile) {
    H5M_ASSIGN_OR_RETURN(holder->registry_,
                         cluster::FileRegistry::Open(Env::Posix(), settings.directory));
    holder->fencer_ = std::make_unique<LockFencer>();
    return holder;
  }
  H5M_ASSIGN_OR_RETURN(const ceph::RootUrl url, ceph::ParseRootUrl(config.root.native()));
  H5M_ASSIGN_OR_RETURN(holder->rados_, cluster::OpenRados({url.conf, url.id, settings.pool,
                                                           settings.object, url.filesystem}));
  if (holder->Addresses().empty()) {
    return absl::UnavailableError(
        "Ceph does not tell this server's address, by which it is fenced");
  }
  return holder;
}

std::unique_ptr<RegistryHolder> RegistryHolder::Of(std::unique_ptr<cluster::Registry> registry,
                                                   std::unique_ptr<cluster::Fencer> fencer) {
  auto holder = std::make_unique<RegistryHolder>();
  holder->registry_ = std::move(registry);
  holder->fencer_ = std::move(fencer);
  return holder;
}

Cluster::Cluster(const ClusterSettings& settings, Parts parts)
    : settings_(settings),
      parts_(std::move(parts)),
      store_(*this),
      host_(
          store_, [this](const std::string& cell) { return OpenCellStore(cell); },
          parts_.close_timeout) {}

Cluster::~Cluster() {
  runner_.reset();
  // An open may be about to add its mount to the node.
  host_.AwaitAll();
  store_.Close(absl::ZeroDuration()).IgnoreError();
}

absl::StatusOr<OpenedStore> Cluster::OpenCellStore(const std::string& cell) {
  // After the claim: of two cells that lie in each other, the one that was made later finds the
  // other one.
  H5M_ASSIGN_OR_RETURN(cluster::RegistryView texts, parts_.registry->registry().ReadAll());
  H5M_ASSIGN_OR_RETURN(const cluster::ClusterView view, cluster::DecodeView(std::move(texts)));
  H5M_RETURN_IF_ERROR(cluster::CheckApart(view, cell));
  absl::StatusOr<OpenedStore> opened = parts_.open(cell);
  if (opened.ok() && !parts_.root.empty()) return OfThisRoot(*std::move(opened));
  if (!absl::IsInternal(opened.status())) return opened;
  // kInternal would end this server, and each one that claims the cell after it, for one disk block
  // that cannot be read. Store and mount are gone, so nothing of the cell is left to be written.
  if (parts_.is_fenced != nullptr && parts_.is_fenced()) return opened;
  return absl::UnknownError(opened.status().message());
}

absl::StatusOr<OpenedStore> Cluster::OfThisRoot(OpenedStore opened) {
  const absl::Status kept = KeepRoot(parts_.registry->registry(), settings_, parts_.root);
  if (kept.ok()) return opened;
  const bool is_closed = opened.store->Close(parts_.close_timeout).ok();
  const auto on_unmounted = std::move(opened.on_unmounted);
  {
    // The store before the file system that it is on: an assignment would end that first.
    const OpenedStore ends = std::move(opened);
  }
  if (is_closed && on_unmounted != nullptr) on_unmounted();
  return kept;
}

void Cluster::Start(const std::string& listen, const std::string& http) {
  cluster::ServerIdentity identity = {
      .id = settings_.node,
      .listen = listen,
      .session = HexOf(RandomBytes16()),
      .addresses = parts_.registry->Addresses(),
      .version = std::string(kVersion),
      .http = http,
  };
  cluster::NodeEvents events = {
      .on_gone =
          [this](const absl::Status& why) {
            if (!why.ok()) parts_.on_lost(why);
          },
      .on_note = parts_.on_note,
      .on_event = [this](const cluster::NodeEvent& event) { Tell(event); },
      .on_exit_wanted = parts_.on_exit_wanted,
  };
  const cluster::Timing timing = settings_.Timing();
  node_ =
      std::make_unique<cluster::Node>(parts_.registry->registry(), parts_.registry->fencer(), host_,
                                      clock_, timing, std::move(identity), std::move(events));
  joined_ = node_.get();
  runner_ = std::make_unique<cluster::Runner>(*node_, clock_, timing);
}

absl::Status Cluster::Drain(absl::Duration timeout) {
  if (runner_ == nullptr) return absl::OkStatus();
  node_->Drain();
  if (runner_->AwaitGone(timeout)) return absl::OkStatus();
  return absl::UnavailableError("not all cells could be given away");
}

absl::Status Cluster::AddMount(const std::string& session,
                               const std::vector<std::string>& addresses) {
  cluster::Node* const node = joined_;
  if (node == nullptr) return absl::UnavailableError("this server has not joined its cluster yet");
  return node->AddMount(session, addresses);
}

absl::Status Cluster::DropMount(const std::string& session,
                                const std::vector<std::string>& addresses) {
  cluster::Node* const node = joined_;
  if (node == nullptr) return absl::UnavailableError("this server has not joined its cluster yet");
  return node->DropMount(session, addresses);
}

bool Cluster::has_looked() {
  cluster::Node* const node = joined_;
  return node != nullptr && node->cells().has_looked();
}

std::optional<std::string> Cluster::CellOf(std::string_view path) {
  cluster::Node* const node = joined_;
  return node == nullptr ? std::nullopt : node->cells().CellOf(path);
}

cluster::Route Cluster::Find(std::string_view cell) {
  cluster::Node* const node = joined_;
  if (node == nullptr) return {cluster::RouteKind::kWait, 0, "", ""};
  if (node->cells().Resolve(cell, 0).kind == cluster::RouteKind::kNoCell) {
    return FindUnknown(*node, cell);
  }
  return node->Find(cell, 0);
}

bool Cluster::MayAskAgain() {
  const absl::Duration now = clock_.Monotonic();
  absl::MutexLock lock(&mutex_);
  if (is_asking_ || now - sent_at_ < settings_.beat) return false;
  sent_at_ = now;
  is_asking_ = true;
  return true;
}

void Cluster::HasAskedAgain() {
  absl::MutexLock lock(&mutex_);
  is_asking_ = false;
}

cluster::Route Cluster::FindSent(std::string_view cell, uint64_t seen_epoch) {
  const cluster::Route wait = {cluster::RouteKind::kWait, 0, "", ""};
  cluster::Node* const node = joined_;
  if (node == nullptr) return wait;
  cluster::Route route = node->cells().Resolve(cell, seen_epoch);
  if (route.kind != cluster::RouteKind::kReadAgain) return route;
  // Anybody can write a high epoch into a URL. Where the registry hangs, one waits for it, and not
  // all workers do.
  if (!MayAskAgain()) return wait;
  route = node->Find(cell, seen_epoch);
  HasAskedAgain();
  // The registry itself has an older one: it was made anew, or the URL has a made-up number.
  const bool is_older =
      node->cells().Resolve(cell, seen_epoch).kind == cluster::RouteKind::kReadAgain;
  return is_older ? node->cells().Resolve(cell, 0) : route;
}

// Any caller can name what is in no cell. The node reads the registry once in a beat by itself, so
// more reads than that for all of them would tell little.
cluster::Route Cluster::FindUnknown(cluster::Node& node, std::string_view cell) {
  const absl::Duration now = clock_.Monotonic();
  {
    absl::MutexLock lock(&mutex_);
    if (now - asked_at_ < settings_.beat) return {asked_kind_, 0, "", ""};
    asked_at_ = now;
  }
  cluster::Route route = node.Find(cell, 0);
  absl::MutexLock lock(&mutex_);
  const bool is_away = route.kind == cluster::RouteKind::kWait;
  asked_kind_ = is_away ? cluster::RouteKind::kWait : cluster::RouteKind::kNoCell;
  return route;
}

absl::Status Cluster::Check(std::string_view cell, uint64_t epoch) {
  cluster::Node* const node = joined_;
  if (node == nullptr) return absl::UnavailableError("this server has not joined its cluster yet");
  return node->guard().Check(cell, epoch);
}

absl::Status Cluster::BeforeAck(std::string_view cell, uint64_t epoch) {
  cluster::Node* const node = joined_;
  if (node == nullptr) return absl::UnavailableError("this server has not joined its cluster yet");
  return node->guard().BeforeAck(cell, epoch);
}

}  // namespace h5mirror::server
