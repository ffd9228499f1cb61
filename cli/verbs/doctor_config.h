// The check of `h5mirror doctor` for the driver's config in the environment.
#ifndef H5MIRROR_CLI_VERBS_DOCTOR_CONFIG_H_
#define H5MIRROR_CLI_VERBS_DOCTOR_CONFIG_H_

#include <string>
#include <string_view>

#include "cli/verbs/doctor_report.h"

namespace h5mirror::tools {

// Looks at `config`, the text of HDF5_DRIVER_CONFIG. `server` is the one that doctor asks.
// kFail: a key that the driver does not know, or an item that is no KEY=VALUE. kWarn: programs
// mirror to another server than doctor asks.
Check CheckDriverConfig(std::string_view config, std::string_view server);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_DOCTOR_CONFIG_H_
