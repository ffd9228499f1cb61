// The modes of local files: LocalMode without a mirror, MirroredMode with mirrors.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LOCAL_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LOCAL_MODE_H_

#include <memory>

#include "client_vfd/plugin/modes/mirrored_file.h"
#include "client_vfd/plugin/modes/mirroring_mode.h"
#include "client_vfd/plugin/modes/open_files.h"
#include "client_vfd/plugin/modes/writable_mode.h"

namespace h5mirror::vfd {

FileIdentity LocalIdentity(const FileKey& key);

class LocalMode final : public WritableMode {
 public:
  LocalMode(const HostLibrary& host, std::unique_ptr<UnderFile> under, const FileKey& key);
  herr_t Close() override;

 private:
  OpenMark mark_;
};

class MirroredMode final : public MirroringMode {
 public:
  MirroredMode(const HostLibrary& host, std::unique_ptr<UnderFile> under, const FileKey& key,
               std::unique_ptr<MirroredFile> mirror);
  // The mirrors decide nothing: the result is that of the local file.
  herr_t Close() override;
  MirroredFile* Mirror() override { return &mirror(); }

 private:
  OpenMark mark_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LOCAL_MODE_H_
