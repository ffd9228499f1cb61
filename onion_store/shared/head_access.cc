#include "onion_store/shared/head_access.h"

#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kOwnerBits = 0700;
constexpr uint32_t kReadBit = 4;
constexpr uint32_t kPassBits = 0011;
// The mode of a head if that of the writer's file is unknown.
constexpr uint32_t kUnknownMode = 0644;

bool HasLists(const StoreContext& context) {
  return context.options.owner_of_heads == HeadOwner::kAcl;
}

// The server must write its head even if the local file is read-only.
uint32_t WithOwner(uint32_t mode_bits) { return (mode_bits & 0777) | 0600; }

}  // namespace

uint32_t DirectoryMode(const StoreOptions& options) {
  const uint32_t mode_bits = 0777 & ~options.umask_bits;
  return options.owner_of_heads == HeadOwner::kAcl ? mode_bits | kPassBits : mode_bits;
}

absl::Status HeadAccess::Give(EnvFile& head, const LocalAccess& local) const {
  const uint32_t mode_bits = local.mode_bits & 0777 & ~context_.options.umask_bits;
  if (!HasLists(context_)) return head.SetMode(mode_bits, context_.group);
  FileAccess access{WithOwner(mode_bits), {}};
  if (local.reader.has_value()) {
    access.named.push_back({NamedAccess::Kind::kUser, *local.reader, kReadBit});
  }
  return Set(head, access, context_.group);
}

absl::Status HeadAccess::GiveAs(EnvFile& head, EnvFile& former, uint32_t mode_bits) const {
  if (!HasLists(context_)) {
    return Give(head, {mode_bits == 0 ? kUnknownMode : mode_bits, std::nullopt});
  }
  absl::StatusOr<FileAccess> access = former.Access();
  if (absl::IsUnimplemented(access.status())) access = FileAccess{mode_bits & kOwnerBits, {}};
  H5M_RETURN_IF_ERROR(access.status());
  if (mode_bits != 0) access->mode_bits &= kOwnerBits | mode_bits;
  access->mode_bits = WithOwner(access->mode_bits);
  return Set(head, *access, context_.group);
}

absl::Status HeadAccess::GiveFork(EnvFile& head, uint32_t mode_bits,
                                  std::optional<uint32_t> reader) const {
  if (mode_bits == 0 && !HasLists(context_)) mode_bits = kUnknownMode;
  return Give(head, {mode_bits, reader});
}

absl::Status HeadAccess::Narrow(EnvFile& head, const LocalAccess& local) const {
  if (!HasLists(context_) || local.mode_bits == 0) return absl::OkStatus();
  absl::StatusOr<FileAccess> access = head.Access();
  if (absl::IsUnimplemented(access.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(access.status());
  const uint32_t narrowed = access->mode_bits & (kOwnerBits | local.mode_bits);
  if (narrowed == access->mode_bits) return absl::OkStatus();
  access->mode_bits = narrowed;
  return Set(head, *access, -1);
}

absl::Status HeadAccess::Set(EnvFile& head, const FileAccess& access, int64_t group) const {
  const absl::Status set = head.SetAccess(access, group);
  if (!absl::IsUnimplemented(set) || access.named.empty()) return set;
  if (!context_.told_of_no_access_list.exchange(true)) {
    context_.TellNotice(
        StoreNotice::Kind::kNoAccessList, std::string(name_),
        StrCat(
            "owner_of_heads = \"acl\": ", set.message(),
            "; this head and others like it get a mode for the server's user alone (told once)"));
  }
  return head.SetAccess({access.mode_bits & kOwnerBits, {}}, group);
}

}  // namespace h5mirror::store
