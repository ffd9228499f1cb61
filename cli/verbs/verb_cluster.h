// h5mirror cluster.
#ifndef H5MIRROR_CLI_VERBS_VERB_CLUSTER_H_
#define H5MIRROR_CLI_VERBS_VERB_CLUSTER_H_

#include "cli/verbs/verbs.h"

namespace h5mirror::tools {

// Of `cluster status`, among the exit codes of ExitCodeHelp(): a cell is served by nobody, or a
// server is lost.
inline constexpr int kExitDegraded = 9;

void AddCluster(CLI::App& app, Context& context, Action& action);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERB_CLUSTER_H_
