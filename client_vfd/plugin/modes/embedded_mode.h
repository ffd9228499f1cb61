// The mode of files that are written with server=embedded.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_MODE_H_

#include <memory>
#include <utility>

#include "client_vfd/plugin/modes/embedded_file.h"
#include "client_vfd/plugin/modes/open_files.h"
#include "client_vfd/plugin/modes/writable_mode.h"

namespace h5mirror::vfd {

FileIdentity EmbeddedIdentity(const FileKey& key, const EmbeddedFile& file);

class EmbeddedMode final : public WritableMode {
 public:
  // `key`: of the head; empty: there was none.
  EmbeddedMode(const HostLibrary& host, std::unique_ptr<EmbeddedFile> file, FileIdentity identity,
               const FileKey& key)
      : WritableMode(host, std::move(file), std::move(identity)), mark_(key) {}

  herr_t Close() override;
  void ArmBarrier(H5mBarrier kind, const char* comment) override {
    file().barrier().Arm(kind, comment);
  }
  int FinishBarrier() override { return file().barrier().Finish(); }
  bool ArmTick() override { return file().ArmTick(); }
  void Status(H5mStatus* status) const override;

 private:
  EmbeddedFile& file() const { return static_cast<EmbeddedFile&>(under()); }

  OpenMark mark_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_MODE_H_
