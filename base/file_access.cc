#include "base/file_access.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#include <utility>

#include "base/errno_status.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kHeaderBytes = 4;
constexpr size_t kEntryBytes = 8;
constexpr uint32_t kAllBits = 7;

void Append(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t NumberAt(std::string_view bytes, size_t at, size_t length) {
  uint32_t value = 0;
  for (size_t i = 0; i < length; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

void AppendEntry(uint32_t tag, uint32_t bits, uint32_t id, std::string* out) {
  Append(tag, 2, out);
  Append(bits & kAllBits, 2, out);
  Append(id, 4, out);
}

void AppendNamed(const FileAccess& access, NamedAccess::Kind kind, uint32_t tag, std::string* out) {
  for (const NamedAccess& entry : access.named) {
    if (entry.kind == kind) AppendEntry(tag, entry.bits, entry.id, out);
  }
}

// False: `tag` is no tag of a list.
bool Take(uint32_t tag, uint32_t bits, uint32_t id, FileAccess* access, uint32_t* mask) {
  switch (tag) {
    case ACL_USER_OBJ:
      access->mode_bits |= bits << 6;
      return true;
    case ACL_GROUP_OBJ:
      access->mode_bits |= bits << 3;
      return true;
    case ACL_OTHER:
      access->mode_bits |= bits;
      return true;
    case ACL_USER:
      access->named.push_back({NamedAccess::Kind::kUser, id, bits});
      return true;
    case ACL_GROUP:
      access->named.push_back({NamedAccess::Kind::kGroup, id, bits});
      return true;
    case ACL_MASK:
      *mask = bits;
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string EncodeAccessList(const FileAccess& access) {
  uint32_t mask = access.mode_bits >> 3 & kAllBits;
  for (const NamedAccess& entry : access.named) mask |= entry.bits;
  std::string bytes;
  Append(POSIX_ACL_XATTR_VERSION, kHeaderBytes, &bytes);
  const auto no_id = static_cast<uint32_t>(ACL_UNDEFINED_ID);
  AppendEntry(ACL_USER_OBJ, access.mode_bits >> 6, no_id, &bytes);
  AppendNamed(access, NamedAccess::Kind::kUser, ACL_USER, &bytes);
  AppendEntry(ACL_GROUP_OBJ, access.mode_bits >> 3, no_id, &bytes);
  AppendNamed(access, NamedAccess::Kind::kGroup, ACL_GROUP, &bytes);
  AppendEntry(ACL_MASK, mask, no_id, &bytes);
  AppendEntry(ACL_OTHER, access.mode_bits, no_id, &bytes);
  return bytes;
}

absl::StatusOr<FileAccess> DecodeAccessList(std::string_view bytes) {
  const bool is_whole = bytes.size() >= kHeaderBytes &&
                        (bytes.size() - kHeaderBytes) % kEntryBytes == 0 &&
                        NumberAt(bytes, 0, kHeaderBytes) == POSIX_ACL_XATTR_VERSION;
  if (!is_whole) {
    return absl::InvalidArgumentError(
        StrCat("an access list of ", bytes.size(), " bytes that is not of version 2"));
  }
  FileAccess access;
  uint32_t mask = kAllBits;
  for (size_t at = kHeaderBytes; at < bytes.size(); at += kEntryBytes) {
    const uint32_t tag = NumberAt(bytes, at, 2);
    const uint32_t bits = NumberAt(bytes, at + 2, 2) & kAllBits;
    if (!Take(tag, bits, NumberAt(bytes, at + 4, 4), &access, &mask)) {
      return absl::InvalidArgumentError(StrCat("an access list with the unknown tag ", tag));
    }
  }
  for (NamedAccess& entry : access.named) entry.bits &= mask;
  access.mode_bits &= 0707 | mask << 3;
  return access;
}

absl::StatusOr<std::optional<FileAccess>> ReadAccessList(int fd) {
  const ssize_t size = fgetxattr(fd, kAccessListName, nullptr, 0);
  if (size == 0 || (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP))) return std::nullopt;
  if (size < 0) return ErrnoToStatus(errno, "read the access list of a file");
  std::string bytes(static_cast<size_t>(size), '\0');
  const ssize_t got = fgetxattr(fd, kAccessListName, bytes.data(), bytes.size());
  if (got < 0) return ErrnoToStatus(errno, "read the access list of a file");
  absl::StatusOr<FileAccess> access =
      DecodeAccessList(std::string_view(bytes).substr(0, static_cast<size_t>(got)));
  if (!access.ok()) return access.status();
  return *std::move(access);
}

uint32_t ModeWithoutMask(int fd, uint32_t mode_bits) {
  if (fd < 0) return mode_bits;
  const auto list = ReadAccessList(fd);
  if (list.ok() && !list->has_value()) return mode_bits;
  return (mode_bits & 0707) | (list.ok() ? (*list)->mode_bits & 070 : 0);
}

}  // namespace h5mirror
