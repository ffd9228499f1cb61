#include "sync/upload.h"

#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "cli/process/io.h"

namespace h5mirror::tools {
namespace {

// Between two looks at how far it has come.
constexpr uint64_t kStepBytes = 4 << 20;

}  // namespace

absl::StatusOr<PushResult> Upload(rpc::Client& client, const LocalFile& file,
                                  const PushRequest& request, Progress& progress) {
  PushSession session(client, file, request);
  H5M_RETURN_IF_ERROR(session.Open());
  uint64_t next = 0;
  while (const std::optional<Extent> data = NextData(file.fd(), next, file.size_bytes())) {
    for (next = data->offset; next < data->end();) {
      const Extent step{next, std::min(kStepBytes, data->end() - next)};
      H5M_RETURN_IF_ERROR(session.Send(step));
      next = step.end();
      progress.Update(next);
    }
  }
  return session.Commit();
}

}  // namespace h5mirror::tools
