#include "client_vfd/plugin/modes/embedded_mode.h"

#include "client_vfd/plugin/modes/local_mode.h"

namespace h5mirror::vfd {
namespace {

FileIdentity EmbeddedIdentity(const FileKey& key, const H5FD_t* under) {
  FileIdentity identity = LocalIdentity(key);
  identity.store = StoreOf(under);
  return identity;
}

}  // namespace

EmbeddedMode::EmbeddedMode(const HostLibrary& host, H5FD_t* under, const FileKey& key)
    : WritableMode(host, under, EmbeddedIdentity(key, under)), mark_(key) {}

herr_t EmbeddedMode::Close() {
  mark_.Remove();
  return under()->cls->close(under());
}

void EmbeddedMode::Status(H5mStatus* status) const {
  *status = H5mStatus{};
  StatusOfEmbedded(under(), status);
}

}  // namespace h5mirror::vfd
