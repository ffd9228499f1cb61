#include "rpc/whole_cut.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "rpc/timestamp.h"

namespace h5mirror::rpc {
namespace {

// The most versions of the first member to look at. Usually few cuts are newer than the newest
// whole one: those that a member with a slower server or link still lacks.
constexpr int kVersionsMax = 1000;

absl::StatusOr<v1::Version> FindOfGroup(const std::string& name, const v1::GroupCut& group,
                                        FindVersionCall find) {
  v1::FindVersionRequest request;
  request.set_name(name);
  request.mutable_group()->set_group_id(group.group_id());
  request.mutable_group()->set_number(group.number());
  return find(request);
}

absl::StatusOr<v1::Version> FindOlder(const std::string& name, const v1::Version& version,
                                      FindVersionCall find) {
  v1::FindVersionRequest request;
  request.set_name(name);
  *request.mutable_at_time() = ToProto(FromProto(version.server_time()) - absl::Nanoseconds(1));
  return find(request);
}

absl::Status NoneIsWhole(const std::string& first) {
  return absl::NotFoundError(
      absl::StrCat(first,
                   " is the first member of several files, and no cut is on the server of "
                   "which each of them has a version; h5mirror log shows those of each"));
}

}  // namespace

std::string MemberName(const std::string& of, const std::string& told) {
  if (told.starts_with('/')) return told.substr(1);
  return of.substr(0, of.rfind('/') + 1) + told;  // npos + 1 is 0.
}

std::string FirstMember(const std::string& name, const v1::Version& version) {
  if (version.group().member().empty()) return "";
  return MemberName(name, version.group().member(0));
}

absl::StatusOr<WholeCut> WholeCutOf(const std::string& first, const v1::Version& version,
                                    FindVersionCall find) {
  WholeCut cut{version.group().number(), {{first, version}}};
  for (const std::string& told : version.group().member()) {
    const std::string name = MemberName(first, told);
    if (name == first) continue;
    absl::StatusOr<v1::Version> found = FindOfGroup(name, version.group(), find);
    if (absl::IsNotFound(found.status())) {
      return absl::NotFoundError(
          absl::StrCat(first, "@", version.version(), " is of a cut of ",
                       version.group().member_size(), " files, of which ", name,
                       " has no version; another version may be whole, see h5mirror log ", name));
    }
    H5M_RETURN_IF_ERROR(found.status());
    cut.members.push_back({name, *std::move(found)});
  }
  return cut;
}

absl::StatusOr<WholeCut> NewestWholeCut(const std::string& first, v1::Version version,
                                        FindVersionCall find) {
  for (int looked_at = 0; looked_at < kVersionsMax; ++looked_at) {
    // This version and older ones belong to no cut of the group.
    if (FirstMember(first, version) != first) return NoneIsWhole(first);
    absl::StatusOr<WholeCut> cut = WholeCutOf(first, version, find);
    if (!absl::IsNotFound(cut.status())) return cut;
    absl::StatusOr<v1::Version> older = FindOlder(first, version, find);
    if (absl::IsNotFound(older.status())) return NoneIsWhole(first);
    H5M_RETURN_IF_ERROR(older.status());
    version = *std::move(older);
  }
  return NoneIsWhole(first);
}

}  // namespace h5mirror::rpc
