// The common part of the modes whose files have mirrors: MirroredMode, and RemoteMode, where the
// server's is the only copy.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORING_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORING_MODE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/modes/mirrored_file.h"
#include "client_vfd/plugin/modes/writable_mode.h"

namespace h5mirror::vfd {

class MirroringMode : public WritableMode {
 public:
  ~MirroringMode() override { DropLayers(); }

  void ArmBarrier(H5mBarrier kind, const char* comment) override {
    mirror_->barrier().Arm(kind, comment);
  }
  int FinishBarrier() override { return mirror_->barrier().Finish(); }
  bool ArmTick() override { return mirror_->ArmTick(); }
  void Status(H5mStatus* status) const override { mirror_->Status(status); }
  std::vector<std::string> Servers() const override { return mirror_->Servers(); }
  void StatusOf(size_t index, H5mStatus* status) const override {
    mirror_->StatusOf(index, status);
  }

 protected:
  // `mirror` lies over `under`.
  MirroringMode(const HostLibrary& host, std::unique_ptr<UnderFile> under, FileIdentity identity,
                std::unique_ptr<MirroredFile> mirror)
      : WritableMode(host, std::move(under), std::move(identity), mirror.get()),
        mirror_(std::move(mirror)) {}
  MirroredFile& mirror() { return *mirror_; }

 private:
  const std::unique_ptr<MirroredFile> mirror_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORING_MODE_H_
