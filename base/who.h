// This machine and this user, read once. Thread-safe.
#ifndef H5MIRROR_BASE_WHO_H_
#define H5MIRROR_BASE_WHO_H_

#include <string>

namespace h5mirror {

const std::string& OwnHost();
const std::string& OwnMachineId();  // the host where the machine has none
const std::string& OwnUser();       // LOGNAME, else the number, where it has no name

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_WHO_H_
