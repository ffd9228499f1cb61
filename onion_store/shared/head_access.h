// Sets the rights of users to a head on the disk: StoreOptions::umask_bits, group and
// owner_of_heads. The head itself records these rights: renames keep them, and a rollback that
// needs a new head copies them.
#ifndef H5MIRROR_ONION_STORE_SHARED_HEAD_ACCESS_H_
#define H5MIRROR_ONION_STORE_SHARED_HEAD_ACCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/env.h"
#include "onion_store/shared/store_context.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The mode of directories above a head. With access lists all users may pass through, but not list
// it: a user with the right to read a head must be able to reach it.
uint32_t DirectoryMode(const StoreOptions& options);

// The rights to the head of the file `name`. Thread-safe. Borrows both arguments. Errors of all
// calls: those of the disk.
class HeadAccess {
 public:
  HeadAccess(StoreContext& context, std::string_view name) : context_(context), name_(name) {}

  // Gives a new head its rights, by those of the writer's file.
  absl::Status Give(EnvFile& head, const LocalAccess& local) const;
  // Gives a new head that a rollback makes the rights of `former`. `mode_bits` are those of the
  // last writer's file; 0: unknown.
  absl::Status GiveAs(EnvFile& head, EnvFile& former, uint32_t mode_bits) const;
  // Gives the head of a fork its rights. `mode_bits` as above, of the forked file: a user without a
  // right there has none to the fork. `reader` as in LocalAccess.
  absl::Status GiveFork(EnvFile& head, uint32_t mode_bits, std::optional<uint32_t> reader) const;
  // With HeadOwner::kAcl: takes from group and others the rights that `local` does not give them.
  // Makes no change if there is nothing to take, because a change may cost a look at the whole
  // head.
  absl::Status Narrow(EnvFile& head, const LocalAccess& local) const;

 private:
  absl::Status Set(EnvFile& head, const FileAccess& access, int64_t group) const;

  StoreContext& context_;
  const std::string_view name_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_HEAD_ACCESS_H_
