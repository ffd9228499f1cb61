// Finds versions of the members of a family, split or multi file that belong to the same moment.
#ifndef H5MIRROR_RPC_WHOLE_CUT_H_
#define H5MIRROR_RPC_WHOLE_CUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "h5mirror/v1/types.pb.h"
#include "h5mirror/v1/versions.pb.h"

namespace h5mirror::rpc {

struct MemberVersion {
  std::string name;  // under the server's root
  v1::Version version;
};

// A cut that every member has a version of. Never empty; the first member comes first.
struct WholeCut {
  uint64_t number = 0;
  std::vector<MemberVersion> members;
};

// Versions.FindVersion at the server of the members.
using FindVersionCall =
    absl::FunctionRef<absl::StatusOr<v1::Version>(const v1::FindVersionRequest&)>;

// The name under the server's root of the member that member `of` refers to as `told`.
std::string MemberName(const std::string& of, const std::string& told);

// The name of the first member; `version` is one of `name`. Empty: it is of no group.
std::string FirstMember(const std::string& name, const v1::Version& version);

// The cut of `version` of the first member `first`.
// Errors: kNotFound  a member has no version of it; the message names the member and the way out.
//         those of `find`.
absl::StatusOr<WholeCut> WholeCutOf(const std::string& first, const v1::Version& version,
                                    FindVersionCall find);
// The newest whole cut that is not newer than `version` of the first member `first`.
// Errors: kNotFound  there is none.
//         those of `find`.
absl::StatusOr<WholeCut> NewestWholeCut(const std::string& first, v1::Version version,
                                        FindVersionCall find);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_WHOLE_CUT_H_
