// The driver's questions to the system about its process.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_THIS_PROCESS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_THIS_PROCESS_H_

#include <string>

namespace h5mirror::vfd {

// The machine's name, or "localhost" where it has none. Asked once. Thread-safe.
const std::string& HostName();

// The permission bits of a file that this process makes.
unsigned NewFileMode();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_THIS_PROCESS_H_
