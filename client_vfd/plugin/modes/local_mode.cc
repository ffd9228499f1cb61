#include "client_vfd/plugin/modes/local_mode.h"

#include <utility>

#include "client_vfd/plugin/modes/local_file.h"

namespace h5mirror::vfd {

FileIdentity LocalIdentity(const FileKey& key) {
  FileIdentity identity;
  identity.kind = FileIdentity::Kind::kLocal;
  identity.device = key.device;
  identity.inode = key.inode;
  return identity;
}

LocalMode::LocalMode(const HostLibrary& host, H5FD_t* under, const FileKey& key)
    : WritableMode(host, under, LocalIdentity(key)), mark_(key) {}

herr_t LocalMode::Close() {
  mark_.Remove();
  const herr_t put = CloseLayers();
  const herr_t result = CloseLocal(host(), under());
  return put < 0 ? put : result;
}

MirroredMode::MirroredMode(const HostLibrary& host, H5FD_t* under, const FileKey& key,
                           std::unique_ptr<MirroredFile> mirror)
    : MirroringMode(host, under, LocalIdentity(key), std::move(mirror)), mark_(key) {}

herr_t MirroredMode::Close() {
  mark_.Remove();
  const herr_t put = CloseLayers();
  mirror().BeforeClose();
  const herr_t result = CloseLocal(host(), under());
  mirror().AfterClose();
  return put < 0 ? put : result;
}

}  // namespace h5mirror::vfd
