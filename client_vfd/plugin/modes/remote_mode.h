// The modes of mode=remote where the file is written. A file that the process writes is one file
// for all of its opens: to a second one HDF5 finds by cmp() that it has it open.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_MODE_H_

#include <memory>
#include <string>
#include <utility>

#include "client_vfd/plugin/modes/mirroring_mode.h"
#include "client_vfd/plugin/modes/remote_file.h"

namespace h5mirror::vfd {

// Which file it is: `name` on its server. `version` as in FileIdentity.
FileIdentity RemoteIdentity(std::string name, std::string version = "");

// Whether a RemoteMode of `host` has that file. Thread-safe.
bool IsWrittenRemotely(const HostLibrary& host, const std::string& remote_name);

class RemoteMode final : public MirroringMode {
 public:
  // `root`: for the files that it leads to.
  RemoteMode(const HostLibrary& host, std::unique_ptr<RemoteFile> under, FileIdentity identity,
             std::unique_ptr<MirroredFile> mirror, RootPtr root);
  ~RemoteMode() override { Unregister(); }
  // Fails if the server does not have all written bytes.
  herr_t Close() override;
  RootPtr LinkRoot() const override { return root_; }

 private:
  void Unregister();

  const RootPtr root_;
  bool is_registered_ = true;
};

// HDF5's second look at a file that a RemoteMode has open. HDF5 finds that the two are one, and
// closes this one.
class RemoteProbe final : public WritableMode {
 public:
  RemoteProbe(const HostLibrary& host, std::unique_ptr<RemoteFile> under, FileIdentity identity)
      : WritableMode(host, std::move(under), std::move(identity)) {}
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_MODE_H_
