#include "onion_store/file/state/file_health.h"

#include "base/strings.h"
#include "onion_store/disk/no_room_to_sync.h"

namespace h5mirror::store {

bool FileHealth::Die(const std::string& name, const absl::Status& status) {
  if (!dead_.ok()) return false;
  const bool is_full = absl::IsResourceExhausted(status) || IsNoRoomToSync(status);
  dead_ =
      absl::Status(is_full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
                   ToAbsl(StrCat(name,
                                 ": the store of this file failed and must be opened "
                                 "again, nothing durable is lost: ",
                                 ToStd(status.message()))));
  return true;
}

}  // namespace h5mirror::store
