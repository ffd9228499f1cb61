#include "rpc/timestamp.h"

namespace h5mirror::rpc {
namespace {

constexpr int64_t kFirstSecond = -62'135'596'800;  // 0001-01-01T00:00:00Z
constexpr int64_t kLastSecond = 253'402'300'799;   // 9999-12-31T23:59:59Z
constexpr int32_t kNanosMax = 999'999'999;

}  // namespace

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const timespec spec = absl::ToTimespec(time);  // Rounds down.
  timestamp.set_seconds(spec.tv_sec);
  timestamp.set_nanos(static_cast<int32_t>(spec.tv_nsec));
  return timestamp;
}

absl::Time FromProto(const google::protobuf::Timestamp& timestamp) {
  const int64_t seconds = timestamp.seconds();
  const int32_t nanos = timestamp.nanos();
  if (seconds == 0 && nanos == 0) return absl::InfinitePast();
  if (seconds < kFirstSecond || seconds > kLastSecond || nanos < 0 || nanos > kNanosMax) {
    return absl::InfinitePast();
  }
  return absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
}

}  // namespace h5mirror::rpc
