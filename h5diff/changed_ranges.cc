#include "h5diff/changed_ranges.h"

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {

absl::StatusOr<ChangedRanges> FindChangedRanges(rpc::Client& client, const std::string& name,
                                                int64_t from, int64_t to,
                                                const std::function<void(uint64_t)>& on_progress) {
  ChangedRanges result;
  v1::ListChangesRequest request;
  request.set_name(name);
  request.set_from_version(from);
  request.set_to_version(to);
  H5M_RETURN_IF_ERROR(client.ListChanges(request, [&](const v1::ListChangesResponse& message) {
    if (message.has_from()) {
      result.old_version = message.from();
      result.new_version = message.to();
      result.page_size_bytes = message.page_size_bytes();
    }
    for (const v1::ByteRange& range : message.ranges()) {
      if (range.length_bytes() == 0 || range.offset() > INT64_MAX - range.length_bytes()) {
        return absl::DataLossError(StrCat("changes of ", name, ": the server sent no range"));
      }
      result.changed.Add({range.offset(), range.length_bytes()});
    }
    if (on_progress) on_progress(result.changed.byte_count());
    return absl::OkStatus();
  }));
  const uint64_t size = result.page_size_bytes;
  if (size < 512 || size > 65536 || (size & (size - 1)) != 0) {
    return absl::DataLossError(StrCat("changes of ", name, ": the server sent no page size"));
  }
  return result;
}

}  // namespace h5mirror::tools
