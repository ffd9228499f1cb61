// The servers' state of files whose programs ended without closing them.
#ifndef H5MIRROR_CLI_EXEC_EXEC_LOST_H_
#define H5MIRROR_CLI_EXEC_EXEC_LOST_H_

#include <string>

#include "absl/time/time.h"
#include "cli/exec/exec_report.h"
#include "rpc/client_options.h"

namespace h5mirror::tools {

struct LostFilesRequest {
  std::string config;          // the driver's config string that the programs were started with
  rpc::ClientSettings client;  // flags; they win over it
  absl::Duration timeout;      // for one server; after a failure it is not asked again
};

// Fills cut, version, detail and way_out of the report's files in state writer_lost: their servers
// are asked, for at most 100 files, as the driver would have reached them. Blocks for at most
// `timeout` a server and call.
void AskAboutLostFiles(const LostFilesRequest& request, ExecReport& report);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_EXEC_EXEC_LOST_H_
