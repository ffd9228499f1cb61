#include "rpc/version_request.h"

namespace h5mirror::rpc {
namespace {

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t seconds = absl::ToUnixSeconds(time);  // Rounds down.
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

}  // namespace

v1::FindVersionRequest FindRequest(const std::string& name, const VersionSpec& spec) {
  v1::FindVersionRequest request;
  request.set_name(name);
  if (!spec.tag.empty()) {
    request.set_tag(spec.tag);
  } else if (spec.at.has_value()) {
    *request.mutable_at_time() = ToProto(spec.at->time);
  } else {
    request.set_back(spec.back);
  }
  return request;
}

}  // namespace h5mirror::rpc
