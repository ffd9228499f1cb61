// A file written with server=embedded, as a driver below the driver: EmbeddedMode's `under`. Writes
// go to the file's store, beside the head; the head moves from cut to cut.
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

// Null: it failed, and the reason is on the host's error stack.
H5FD_t* OpenEmbedded(const HostLibrary& host, std::shared_ptr<const Config> config,
                     const EmbeddedTarget& target);
// The same file once more, if `host` has it open; else null, and no error.
H5FD_t* ShareEmbedded(const HostLibrary& host, std::shared_ptr<const Config> config,
                      const EmbeddedTarget& target);

const H5FD_class_t* EmbeddedClass();

// For files of EmbeddedClass(): equal for two that share one file, and only for these.
const void* StoreOf(const H5FD_t* file);
// As MirroredFile's.
void ArmEmbedded(H5FD_t* file, H5mBarrier kind, std::string comment);
int FinishEmbedded(H5FD_t* file);
void StatusOfEmbedded(const H5FD_t* file, H5mStatus* status);

// Brings a head that a crash left between two cuts to the newest durable one, before it is read as
// a plain file. Waits at most the configured timeout for other processes that do this, but not for
// readers of a file with a broken-off edit. On failure tells the user; the file is then read as it
// is.
void HealEmbeddedHead(const Config& config, const EmbeddedTarget& target);
// The same for an edit that a killed h5edit left unfinished (docs/design/034-edit-journal.md). For
// all opens, whatever the configuration.
void FinishEdit(const Config& config, const EmbeddedTarget& target);

// Why a file with an unfinished edit must not be mirrored as it is; unset: it has none.
Problem EditBrokenOff(const std::string& real_path);

// Why a file with a history beside it must not be written without that; unset: it has none.
Problem EmbeddedHistoryBeside(const std::string& real_path);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_
