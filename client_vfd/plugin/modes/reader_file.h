// A version of a file on the server as a driver below the driver: what ReaderMode has as its
// `under`. Read-only.
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

// What to open.
struct ReaderTarget {
  std::string given_name;  // as HDF5 passed it, for messages
  std::string real_path;
  std::string name;         // under the server's root
  std::string config_text;  // that `config` was made from
  RootPtr root;             // null: the program names the file itself
  // With mode=remote, of a linked open whose parent is open for writing: opened as if the program
  // named it, and if that fails, as linked.
  RootPtr parent = nullptr;
};

// Null with the reason on the host's error stack. A linked open that fails otherwise than for want
// of such a file gives a file whose reads fail with the reason: HDF5 takes a target that cannot be
// opened for one that is not there, and reads fill values in the place of data.
H5FD_t* OpenReader(const HostLibrary& host, const Config& config, ReaderTarget target);

const H5FD_class_t* ReaderClass();

// Reads from a file of ReaderClass(). 0, or an errno value and the reason in `error`; ESTALE: the
// server no longer holds the cut, or the version.
int ReadCut(H5FD_t* file, H5FD_mem_t type, haddr_t address, size_t size, void* buffer,
            std::string* error);

// Of a file of ReaderClass(): its root; and what tells its bytes from others': files with equal
// keys are one to HDF5. Files with an equal version, opened at different times of their roots, are
// not, since their links lead elsewhere.
RootPtr RootOf(const H5FD_t* file);
const std::string& KeyOf(const H5FD_t* file);
const H5mReaderInfo& InfoOf(const H5FD_t* file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_
