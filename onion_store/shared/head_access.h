// Who may use a head on the disk: StoreOptions::umask_bits, group and owner_of_heads. The head is
// its own record of that: renames keep it, and a rollback that needs a new head copies it.
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

// The mode of directories above a head. With access lists all may pass through, and not look
// around: a user who may read a head must come to it.
uint32_t DirectoryMode(const StoreOptions& options);

// Of the file `name`. Thread-safe. Borrows both. Errors of all: those of the disk.
class HeadAccess {
 public:
  HeadAccess(StoreContext& context, std::string_view name) : context_(context), name_(name) {}

  // To a new head, by what its writer's file has.
  absl::Status Give(EnvFile& head, const LocalAccess& local) const;
  // To a new head that a rollback makes, as `former` has it. `mode_bits` are those of the last
  // writer's file; 0: unknown.
  absl::Status GiveAs(EnvFile& head, EnvFile& former, uint32_t mode_bits) const;
  // To the head of a fork. `mode_bits` as above, of the file that it is a fork of: whom that keeps
  // out, the fork does too. `reader` as in LocalAccess.
  absl::Status GiveFork(EnvFile& head, uint32_t mode_bits, std::optional<uint32_t> reader) const;
  // With HeadOwner::kAcl: takes from group and others what `local` does not give them. Changes
  // nothing where there is nothing to take, as a change may cost a look at the whole head.
  absl::Status Narrow(EnvFile& head, const LocalAccess& local) const;

 private:
  absl::Status Set(EnvFile& head, const FileAccess& access, int64_t group) const;

  StoreContext& context_;
  const std::string_view name_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_HEAD_ACCESS_H_
