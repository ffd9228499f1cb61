// The rules of retention, on the command line.
#ifndef H5MIRROR_CLI_VERBS_RETENTION_FLAGS_H_
#define H5MIRROR_CLI_VERBS_RETENTION_FLAGS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "cli/context/connected_file.h"
#include "h5mirror/v1/versions.pb.h"

namespace h5mirror::tools {

struct RetentionFlags {
  int64_t last = 0, hourly = 0, daily = 0, weekly = 0, monthly = 0, yearly = 0;
  std::string within;
  std::vector<std::string> tags;
};

// `flags` must outlive the parse.
void AddRetentionFlags(CLI::App& verb, RetentionFlags& flags);

// Whether none was given.
bool IsEmpty(const RetentionFlags& flags);

// kInvalidArgument: --keep-within is no duration.
absl::StatusOr<v1::RetentionPolicy> ToPolicy(const RetentionFlags& flags);

// Checks the tags first: a mistyped tag would keep nothing, and its version would be lost for good.
// kNotFound: no version of `file` has one of the tags; kInvalidArgument: one is no tag.
absl::Status CheckTags(Context& context, const ConnectedFile& file, const RetentionFlags& flags);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_RETENTION_FLAGS_H_
