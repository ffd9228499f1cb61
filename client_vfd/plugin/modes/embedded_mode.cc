#include "client_vfd/plugin/modes/embedded_mode.h"

#include "client_vfd/plugin/modes/local_mode.h"

namespace h5mirror::vfd {

FileIdentity EmbeddedIdentity(const FileKey& key, const EmbeddedFile& file) {
  FileIdentity identity = LocalIdentity(key);
  identity.store = file.store();
  return identity;
}

herr_t EmbeddedMode::Close() {
  mark_.Remove();
  return CloseUnder();
}

void EmbeddedMode::Status(H5mStatus* status) const {
  *status = H5mStatus{};
  file().Status(status);
}

}  // namespace h5mirror::vfd
