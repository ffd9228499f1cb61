#include "onion_store/file/state/file_health.h"

#include "base/strings.h"

namespace h5mirror::store {

bool FileHealth::Die(const std::string& name, const absl::Status& status) {
  if (!dead_.ok()) return false;
  dead_ = absl::Status(absl::IsResourceExhausted(status) ? absl::StatusCode::kResourceExhausted
                                                         : absl::StatusCode::kUnavailable,
                       ToAbsl(StrCat(name,
                                     ": the store of this file failed and must be opened "
                                     "again, nothing durable is lost: ",
                                     ToStd(status.message()))));
  return true;
}

}  // namespace h5mirror::store
