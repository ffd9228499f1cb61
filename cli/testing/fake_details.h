// The details that the fake server of the CLI's tests gives for a file.
#ifndef H5MIRROR_CLI_TESTING_FAKE_DETAILS_H_
#define H5MIRROR_CLI_TESTING_FAKE_DETAILS_H_

#include <cstdint>

#include "h5mirror/v1/files.pb.h"

namespace h5mirror::tools {

// `newest` is the file's newest version.
inline void AddDetails(const v1::Version& newest, v1::FileSummary& file) {
  v1::LastWriter& last = *file.mutable_last_writer();
  *last.mutable_writer() = newest.writer();
  last.set_verified_user(newest.verified_user());
  *last.mutable_time() = newest.server_time();
  file.set_history_bytes(4096);
  file.mutable_recent_writes()->set_interval_seconds(5);
  for (const int64_t bytes : {0, 512}) file.mutable_recent_writes()->add_received_bytes(bytes);
}

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_TESTING_FAKE_DETAILS_H_
