// A whole local file, sent as one session with one commit.
#ifndef H5MIRROR_TOOLS_UPLOAD_H_
#define H5MIRROR_TOOLS_UPLOAD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/hex.h"
#include "h5mirror/v1/mirror.pb.h"
#include "rpc/client.h"
#include "tools/local_file.h"
#include "tools/progress.h"

namespace h5mirror::tools {

struct UploadRequest {
  std::string name;                       // under the server's root
  std::string server;                     // for the record, as the user would configure it
  Bytes16 file_id{};                      // the server's, or all zero where it has no such file
  v1::Intent intent = v1::INTENT_UPLOAD;  // or INTENT_REPLACE
  std::string comment;
};

struct UploadResult {
  int64_t cut = 0;
  int64_t version = 0;
  uint64_t sent_bytes = 0;
};

// Sends the file, waits until it is durable and writes the record (kClean). Holes are not
// sent. Before the commit the record says kBehind and names it, so that an answer that gets
// lost is found out at the next open.
//
// Errors: kFailedPrecondition  another session holds the lease, or the two sides have diverged:
//                              the message is the server's; nothing was changed.
//         kAborted             the local file changed while it was read; the server dropped
//                              what it had got.
//         others               as in Mirror.MirrorFile.
absl::StatusOr<UploadResult> Upload(rpc::Client& client, const LocalFile& file,
                                    const UploadRequest& request, Progress& progress);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_UPLOAD_H_
