// The environment in which an HDF5 program is mirrored.
#ifndef H5MIRROR_CLI_EXEC_EXEC_ENVIRONMENT_H_
#define H5MIRROR_CLI_EXEC_EXEC_ENVIRONMENT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/process/child.h"
#include "rpc/client_options.h"

namespace h5mirror::tools {

struct ExecEnvironmentRequest {
  std::string plugin_dir;
  std::string audit_module;  // path; empty: none
  std::string report_dir;
  std::string config;          // the driver's config string; empty: that of the environment
  std::string root;            // names are relative to it; empty: not said
  rpc::ClientSettings client;  // flags; they win over the config string
  // The VOL connector's: how long a changed file waits for a flush, zero: as long as the program
  // likes; and whether drivers that the program names are mirrored too.
  absl::Duration tick = absl::ZeroDuration();
  bool all_drivers = false;

  bool wants_connector() const { return tick > absl::ZeroDuration() || all_drivers; }
};

// The value of a variable; empty where it is not set.
using GetEnvironment = absl::FunctionRef<std::string(const char* name)>;

// The changes of the environment that mirror a program. The user's own HDF5_PLUGIN_PATH and
// LD_AUDIT stay, behind ours; an HDF5_DRIVER_CONFIG for h5mirror is kept unless `config` replaces
// it. Paths become absolute, because programs change their directory.
//
// Errors: kInvalidArgument  flags beside a config that is a file; a value with a ';' in it;
//                           a tick below 10 ms or above 24 h; ticks beside another connector of
//                           the user's.
absl::StatusOr<EnvironmentChanges> ExecEnvironment(const ExecEnvironmentRequest& request,
                                                   GetEnvironment get);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_EXEC_EXEC_ENVIRONMENT_H_
