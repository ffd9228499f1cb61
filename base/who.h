// This machine and this user, read once. Thread-safe.
#ifndef H5MIRROR_BASE_WHO_H_
#define H5MIRROR_BASE_WHO_H_

#include <string>

namespace h5mirror {

const std::string& OwnHost();
const std::string& OwnMachineId();  // OwnHost() if the machine has no id
const std::string& OwnUser();       // if it has no name: LOGNAME, else the uid

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_WHO_H_
