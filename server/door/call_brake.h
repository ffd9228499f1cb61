// The gate's answer to a caller over its limits. Its call is refused before gRPC takes memory for
// it. The refusal comes late, so that a client in a loop costs little.
#ifndef H5MIRROR_SERVER_DOOR_CALL_BRAKE_H_
#define H5MIRROR_SERVER_DOOR_CALL_BRAKE_H_

#include <string_view>

#include "absl/status/status.h"

namespace h5mirror::server {

// Thread-safe.
class CallBrake {
 public:
  struct Answer {
    absl::Status why;      // OK: the call may go on
    bool is_late = false;  // the refusal is to be held back for a while
  };
  virtual ~CallBrake() = default;
  // About a call of `method`, "GetServer". Must not wait.
  virtual Answer Ask(std::string_view method) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_CALL_BRAKE_H_
