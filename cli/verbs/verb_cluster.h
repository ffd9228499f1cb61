// h5mirror cluster.
#ifndef H5MIRROR_CLI_VERBS_VERB_CLUSTER_H_
#define H5MIRROR_CLI_VERBS_VERB_CLUSTER_H_

#include "cli/verbs/verbs.h"

namespace h5mirror::tools {

void AddCluster(CLI::App& app, Context& context, Action& action);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERB_CLUSTER_H_
