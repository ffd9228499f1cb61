// The client's record as JSON text; docs/reference/format.md, "The client's record".
#ifndef H5MIRROR_BASE_LOCAL_RECORD_JSON_H_
#define H5MIRROR_BASE_LOCAL_RECORD_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/local_record.h"

namespace h5mirror {

// "clean", "open", "behind", "diverged".
std::string_view RecordStateName(RecordState state);

// kInvalidArgument: the server or the name is not UTF-8, so JSON cannot hold it.
absl::StatusOr<std::string> RecordToJson(const LocalRecord& record);

// Unknown keys are ignored: a later release may have added them. kInvalidArgument names the key
// that is missing or wrong.
absl::StatusOr<LocalRecord> RecordFromJson(std::string_view text);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_LOCAL_RECORD_JSON_H_
