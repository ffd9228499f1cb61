// A version or cut of a file on the server, as a driver below the driver: ReaderMode's `under`.
// Read-only.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_

#include <memory>
#include <string>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/linked_open.h"

namespace h5mirror::vfd {

// The file to open.
struct ReaderTarget {
  std::string given_name;  // as HDF5 passed it, for messages
  std::string real_path;
  std::string name;         // under the server's root
  std::string config_text;  // the source of `config`
  RootPtr root;             // null: the program names the file itself
  // With mode=remote, for a linked open whose parent is open for writing: the file is opened as if
  // the program named it, and if that fails, as linked.
  RootPtr parent = nullptr;
};

// Null: it failed, and the reason is on the host's error stack.
//
// A linked open that fails although the file may exist gives a file whose reads fail with the
// reason. Else HDF5 would take the target for a missing one, and read fill values in the place of
// data.
H5FD_t* OpenReader(const HostLibrary& host, const Config& config, ReaderTarget target);

const H5FD_class_t* ReaderClass();

// Reads from a file of ReaderClass(). 0, or an errno value and the reason in `error`; ESTALE: the
// server no longer holds the cut, or the version.
int ReadCut(H5FD_t* file, H5FD_mem_t type, haddr_t address, size_t size, void* buffer,
            std::string* error);

// For a file of ReaderClass(): its root; and a key. Files with equal keys are one file to HDF5.
// Equal versions that were opened at different times of their roots have different keys, as their
// links lead elsewhere.
RootPtr RootOf(const H5FD_t* file);
const std::string& KeyOf(const H5FD_t* file);
const H5mReaderInfo& InfoOf(const H5FD_t* file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_
