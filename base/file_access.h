// The rights to a file on the disk: its mode, and the users and groups that an access list
// (ACL, acl(5)) adds.
//
// A file with a list has a mask in place of the group's bits: stat(2) and `ls -l` show the mask,
// which is the upper bound of all that the list adds. Here `mode_bits` always has the bits of the
// group itself. The list is read and written as the attribute system.posix_acl_access, whose bytes
// linux/posix_acl_xattr.h fixes. libacl would write the same bytes. It is not used because the
// modules that other people's programs load contain this room.
#ifndef H5MIRROR_BASE_FILE_ACCESS_H_
#define H5MIRROR_BASE_FILE_ACCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror {

// One entry of an access list.
struct NamedAccess {
  enum class Kind : uint8_t { kUser, kGroup };

  Kind kind = Kind::kUser;
  uint32_t id = 0;    // uid or gid
  uint32_t bits = 0;  // 0..7, as the mask leaves them
  bool operator==(const NamedAccess&) const = default;
};

struct FileAccess {
  uint32_t mode_bits = 0;               // 0..0777; those of the group, without a mask
  std::vector<NamedAccess> named = {};  // empty: the file has no list
  bool operator==(const FileAccess&) const = default;
};

// The bytes of the list: version 2, entries in the order that the kernel demands, and a mask that
// removes no right.
std::string EncodeAccessList(const FileAccess& access);

// Keeps entries that have no bits left under the mask. kInvalidArgument: `bytes` are no such list.
absl::StatusOr<FileAccess> DecodeAccessList(std::string_view bytes);

// The attribute that holds the list.
inline constexpr char kAccessListName[] = "system.posix_acl_access";

// The list of an open file; nullopt: it has none. Errors: those of the disk, without a name;
// kInvalidArgument as above.
absl::StatusOr<std::optional<FileAccess>> ReadAccessList(int fd);

// `mode_bits` of an open file, as stat(2) shows them, with the rights of the group itself: where
// the file has a list, stat shows the mask in their place. If the list cannot be read, the group
// gets no rights.
uint32_t ModeWithoutMask(int fd, uint32_t mode_bits);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_FILE_ACCESS_H_
