// Calls of the Archive service, on a connection of their own.
#ifndef H5MIRROR_RPC_ARCHIVE_CALLS_H_
#define H5MIRROR_RPC_ARCHIVE_CALLS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/archive.pb.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// Calls `sink` for each message; a failed sink cancels the stream and is returned. kUnimplemented:
// the server is of an older release. No deadline: a file may take hours.
absl::Status ArchiveHistory(
    const ClientOptions& options, const v1::ArchiveHistoryRequest& request,
    absl::FunctionRef<absl::Status(const v1::ArchiveHistoryResponse&)> sink);

// `name`: a file whose objects are counted; empty: none. kUnimplemented: the server is of an older
// release.
absl::StatusOr<v1::GetArchiveResponse> GetArchive(const ClientOptions& options,
                                                  const std::string& name,
                                                  absl::Duration timeout = absl::Seconds(15));

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_ARCHIVE_CALLS_H_
