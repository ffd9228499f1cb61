#include "client_vfd/plugin/modes/file_identity.h"

#include <functional>

namespace h5mirror::vfd {
namespace {

template <typename T>
int Order(const T& a, const T& b) {
  return std::less<T>()(a, b) ? -1 : std::less<T>()(b, a) ? 1 : 0;
}

int CompareLocal(const FileIdentity& a, const FileIdentity& b) {
  if (a.store != nullptr && b.store != nullptr) return Order(a.store, b.store);
  const int order = Order(a.device, b.device);
  return order != 0 ? order : Order(a.inode, b.inode);
}

int CompareRemote(const FileIdentity& a, const FileIdentity& b) {
  const int order = a.remote_name.compare(b.remote_name);
  if (order != 0 || a.version.empty() || b.version.empty()) return order;
  return a.version.compare(b.version);
}

}  // namespace

int Compare(const FileIdentity& a, const FileIdentity& b) {
  if (a.kind != b.kind) return Order(a.kind, b.kind);
  switch (a.kind) {
    case FileIdentity::Kind::kReader:
      return a.version.compare(b.version);
    case FileIdentity::Kind::kRemote:
      return CompareRemote(a, b);
    case FileIdentity::Kind::kLocal:
      break;
  }
  return CompareLocal(a, b);
}

}  // namespace h5mirror::vfd
