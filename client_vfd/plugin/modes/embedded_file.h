// A file written with server=embedded as a driver below the driver: what EmbeddedMode has as
// its `under`. Writes go to the file's store, beside the head; the head moves from cut to cut.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_

#include <memory>
#include <string>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/local_file.h"

namespace h5mirror::vfd {

struct EmbeddedTarget {
  std::string given_name;  // as HDF5 passed it, for messages
  std::string real_path;
  H5mIntent intent = H5M_EXISTING;
  Locking locking = Locking::kYes;
  unsigned mode_bits = 0;
};

// Null with the reason on the host's error stack.
H5FD_t* OpenEmbedded(const HostLibrary& host, std::shared_ptr<const Config> config,
                     const EmbeddedTarget& target);
// The same file once more, if `host` has it open; else null, and no error.
H5FD_t* ShareEmbedded(const HostLibrary& host, std::shared_ptr<const Config> config,
                      const EmbeddedTarget& target);

const H5FD_class_t* EmbeddedClass();

// Of files of EmbeddedClass(): equal for two that share one file, and only for them.
const void* StoreOf(const H5FD_t* file);
// As MirroredFile's.
void ArmEmbedded(H5FD_t* file, H5mBarrier kind, std::string comment);
int FinishEmbedded(H5FD_t* file);
void StatusOfEmbedded(const H5FD_t* file, H5mStatus* status);

// Puts a head in order that a crash left between two cuts, before it is read as a plain file; waits
// at most the configured timeout for others who do, but not for readers of a file that an edit was
// broken off in. Says what could not be done; the file is then read as it is.
void HealEmbeddedHead(const Config& config, const EmbeddedTarget& target);
// The same where a killed h5edit left a change of the file on its way
// (docs/design/034-edit-journal.md): for all opens, whatever the configuration.
void FinishEdit(const Config& config, const EmbeddedTarget& target);

// Why a file must not be mirrored as it is; unset: nothing is on its way to it.
Problem EditBrokenOff(const std::string& real_path);

// Why a file with a history of its own beside it must not be written otherwise; unset: it has none.
Problem EmbeddedHistoryBeside(const std::string& real_path);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_
