// The other half of `h5mirror verify`: with --against.
#ifndef H5MIRROR_CLI_VERBS_VERB_VERIFY_H_
#define H5MIRROR_CLI_VERBS_VERB_VERIFY_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {

struct AgainstOptions {
  std::string local;
  std::string file;   // empty: as the record beside `local` says
  std::string every;  // empty: once
  double wait_seconds = 30;
};

absl::StatusOr<int> RunVerifyAgainst(Context& context, const AgainstOptions& options);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERB_VERIFY_H_
