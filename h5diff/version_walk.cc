#include "h5diff/version_walk.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/timestamp.h"

namespace h5mirror::tools {
namespace {

constexpr int kVersionsAtOnce = 500;

}  // namespace

absl::StatusOr<WalkEnd> ForEachVersion(
    rpc::Client& client, v1::ListVersionsRequest request,
    absl::FunctionRef<absl::StatusOr<bool>(const v1::Version&)> take) {
  const absl::Time since =
      request.has_since_time() ? rpc::FromProto(request.since_time()) : absl::InfinitePast();
  request.clear_since_time();
  if (request.page_size() == 0) request.set_page_size(kVersionsAtOnce);
  const bool any_time = since == absl::InfinitePast() && !request.has_until_time();
  bool any = false;
  do {
    H5M_ASSIGN_OR_RETURN(const v1::ListVersionsResponse page, client.ListVersions(request));
    for (const v1::Version& version : page.versions()) {
      const bool is_before = rpc::FromProto(version.server_time()) < since;
      if (is_before && !any) break;
      any = true;
      H5M_ASSIGN_OR_RETURN(const bool go_on, take(version));
      if (!go_on) return WalkEnd::kStopped;
      if (is_before) return WalkEnd::kSince;
    }
    if (!any) break;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  if (any) return WalkEnd::kOldest;
  return absl::NotFoundError(
      StrCat(request.name(), any_time ? " has no version yet; h5mirror commit makes one"
                                      : " has no version of that time"));
}

}  // namespace h5mirror::tools
