// The part of h5mirror recover that is about the members of a family, split or multi file: they go
// back to the newest cut of which the server has all.
#ifndef H5MIRROR_CLI_VERBS_RECOVER_MEMBERS_H_
#define H5MIRROR_CLI_VERBS_RECOVER_MEMBERS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "rpc/client.h"
#include "rpc/whole_cut.h"

namespace h5mirror::tools {

// The newest whole cut of the group that the member `name` belongs to; nullopt: `name` is a file by
// itself. kNotFound: no cut is whole.
absl::StatusOr<std::optional<rpc::WholeCut>> FindMembers(rpc::Client& client,
                                                         const std::string& name);

// The name of member `index` of the family whose first members have `names`, as HDF5 makes it by
// printf; empty: they are no family.
std::string FamilyMemberName(const std::vector<std::string>& names, size_t index);

// A name beside the local file that nothing has.
std::string NameForOldFile(const std::string& local);

struct MembersToRecover {
  rpc::Client& client;
  FileArg mirror;  // of the member that was named
  rpc::WholeCut cut;
  bool dry_run = false;
};

// Makes the versions of the cut the newest ones of all members, and moves local members aside that
// came later. With `dry_run` it only prints that. Returns the mirrors of the members, in their
// order, with the local files beside the one that was named.
// Errors: kFailedPrecondition  a member is written; nothing was changed.
//         kPermissionDenied    a member is to go back, which takes the right "restore".
absl::StatusOr<std::vector<FileArg>> GoBackToCut(Context& context, const MembersToRecover& members);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_RECOVER_MEMBERS_H_
