#include "rpc/version_request.h"

#include "rpc/timestamp.h"

namespace h5mirror::rpc {
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
