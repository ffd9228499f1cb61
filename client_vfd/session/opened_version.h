// Requests and results of opens in mode=reader, for both modules: versions of a server, and those
// beside the file. Pure; no gRPC.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_OPENED_VERSION_H_
#define H5MIRROR_CLIENT_VFD_SESSION_OPENED_VERSION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_vfd/api/session_api.h"
#include "rpc/version_spec.h"

namespace h5mirror::vfd {

// The version that `open` asks for. kInvalidArgument: `open.version` does not parse.
absl::StatusOr<rpc::VersionSpec> SpecOf(const H5mReaderOpen& open);

struct OpenedVersion {
  int64_t version = 0;  // 0: a cut that is no version
  int64_t cut = 0;
  uint64_t size_bytes = 0;
  absl::Time time;       // when the store made it
  std::string identity;  // equal for two opens of the same bytes
};

// Fills `info` except its error number. That includes the time at which the files that this one
// leads to are opened, and one line for the log.
void Describe(const H5mReaderOpen& open, const rpc::VersionSpec& spec, const OpenedVersion& opened,
              H5mReaderInfo* info);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OPENED_VERSION_H_
