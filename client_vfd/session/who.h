// This machine and this user, read once. Thread-safe.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_WHO_H_
#define H5MIRROR_CLIENT_VFD_SESSION_WHO_H_

#include <string>

namespace h5mirror::vfd {

const std::string& OwnHost();
const std::string& OwnMachineId();  // the host where the machine has none
const std::string& OwnUser();       // the number where it has no name

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_WHO_H_
