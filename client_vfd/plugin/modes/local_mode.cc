#include "client_vfd/plugin/modes/local_mode.h"

#include <utility>

namespace h5mirror::vfd {

FileIdentity LocalIdentity(const FileKey& key) {
  FileIdentity identity;
  identity.kind = FileIdentity::Kind::kLocal;
  identity.device = key.device;
  identity.inode = key.inode;
  return identity;
}

LocalMode::LocalMode(const HostLibrary& host, std::unique_ptr<UnderFile> under, const FileKey& key)
    : WritableMode(host, std::move(under), LocalIdentity(key)), mark_(key) {}

herr_t LocalMode::Close() {
  mark_.Remove();
  const herr_t put = CloseLayers();
  const herr_t result = CloseUnder();
  return put < 0 ? put : result;
}

MirroredMode::MirroredMode(const HostLibrary& host, std::unique_ptr<UnderFile> under,
                           const FileKey& key, std::unique_ptr<MirroredFile> mirror)
    : MirroringMode(host, std::move(under), LocalIdentity(key), std::move(mirror)), mark_(key) {}

herr_t MirroredMode::Close() {
  mark_.Remove();
  const herr_t put = CloseLayers();
  mirror().BeforeClose();
  const herr_t result = CloseUnder();
  mirror().AfterClose();
  return put < 0 ? put : result;
}

}  // namespace h5mirror::vfd
