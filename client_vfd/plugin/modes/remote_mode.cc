#include "client_vfd/plugin/modes/remote_mode.h"

#include <map>
#include <mutex>

namespace h5mirror::vfd {
namespace {

// How many opens write a file, by the library that has it and its name.
using WriterKey = std::pair<const HostLibrary*, std::string>;
struct Registry {
  std::mutex mutex;
  std::map<WriterKey, int> counts;
};

Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

}  // namespace

FileIdentity RemoteIdentity(std::string name, std::string version) {
  FileIdentity identity;
  identity.kind = FileIdentity::Kind::kRemote;
  identity.remote_name = std::move(name);
  identity.version = std::move(version);
  return identity;
}

bool IsWrittenRemotely(const HostLibrary& host, const std::string& remote_name) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  return registry.counts.contains({&host, remote_name});
}

RemoteMode::RemoteMode(const HostLibrary& host, std::unique_ptr<RemoteFile> under,
                       FileIdentity identity, std::unique_ptr<MirroredFile> mirror, RootPtr root)
    : MirroringMode(host, std::move(under), std::move(identity), std::move(mirror)),
      root_(std::move(root)) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  ++registry.counts[{&host, this->identity().remote_name}];
}

void RemoteMode::Unregister() {
  if (!std::exchange(is_registered_, false)) return;
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.counts.find({&host(), identity().remote_name});
  if (found != registry.counts.end() && --found->second == 0) registry.counts.erase(found);
}

herr_t RemoteMode::Close() {
  Unregister();
  const herr_t put = CloseLayers();
  mirror().BeforeClose();
  CloseUnder();
  const herr_t result = mirror().AfterClose();
  return put < 0 ? put : result;
}

}  // namespace h5mirror::vfd
