#include "client_vfd/plugin/modes/open_files.h"

#include <compare>
#include <map>
#include <mutex>

namespace h5mirror::vfd {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<FileKey, int> counts;
};

Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

}  // namespace

Seen AddOpenFile(const FileKey& key) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  return registry.counts[key]++ == 0 ? Seen::kFirst : Seen::kAgain;
}

void RemoveOpenFile(const FileKey& key) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.counts.find(key);
  if (found != registry.counts.end() && --found->second == 0) registry.counts.erase(found);
}

bool IsOpenFile(const FileKey& key) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  return registry.counts.contains(key);
}

}  // namespace h5mirror::vfd
