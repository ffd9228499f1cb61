// The mode of files that are written with server=embedded.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_MODE_H_

#include <string>
#include <utility>

#include "client_vfd/plugin/modes/embedded_file.h"
#include "client_vfd/plugin/modes/open_files.h"
#include "client_vfd/plugin/modes/writable_mode.h"

namespace h5mirror::vfd {

class EmbeddedMode final : public WritableMode {
 public:
  // `under` is of EmbeddedClass(). `key`: of the head; empty: there was none.
  EmbeddedMode(const HostLibrary& host, H5FD_t* under, const FileKey& key);

  herr_t Close() override;
  void ArmBarrier(H5mBarrier kind, const char* comment) override {
    ArmEmbedded(under(), kind, comment);
  }
  int FinishBarrier() override { return FinishEmbedded(under()); }
  void Status(H5mStatus* status) const override;

 private:
  OpenMark mark_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_MODE_H_
