// A whole local file, sent as one session with one commit.
#ifndef H5MIRROR_SYNC_UPLOAD_H_
#define H5MIRROR_SYNC_UPLOAD_H_

#include "absl/status/statusor.h"
#include "cli/output/progress.h"
#include "rpc/client.h"
#include "sync/local_file.h"
#include "sync/push_session.h"

namespace h5mirror::tools {

// Sends the file (INTENT_UPLOAD or INTENT_REPLACE), waits until it is durable and writes the
// record (kClean). Holes are not sent. Errors: as PushSession.
absl::StatusOr<PushResult> Upload(rpc::Client& client, const LocalFile& file,
                                  const PushRequest& request, Progress& progress);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_UPLOAD_H_
