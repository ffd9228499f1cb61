// Times on the wire.
#ifndef H5MIRROR_RPC_TIMESTAMP_H_
#define H5MIRROR_RPC_TIMESTAMP_H_

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace h5mirror::rpc {

// Whole nanoseconds; a time between two of them is rounded down.
google::protobuf::Timestamp ToProto(absl::Time time);

// absl::InfinitePast() where the timestamp is unset (all zero), or where it is none: outside of the
// years 1 to 9999, or with nanoseconds outside of [0, 999999999] (timestamp.proto).
absl::Time FromProto(const google::protobuf::Timestamp& timestamp);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TIMESTAMP_H_
