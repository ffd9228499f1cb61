#include "base/superblock.h"

#include <algorithm>

#include "base/superblock_image.h"

namespace h5mirror {
namespace {

// Enough for any superblock's fixed part.
constexpr size_t kSuperblockBytesMax = 128;
constexpr uint8_t kWriterFlags = 0x05;  // 0x01 write access, 0x04 SWMR

std::optional<uint64_t> LittleEndian(std::string_view bytes, size_t offset, size_t width) {
  if (width > 8 || offset + width > bytes.size()) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

// The address after the base address and one more address of `width` bytes.
std::optional<uint64_t> EndOfFile(std::string_view bytes, size_t base_offset, size_t width) {
  return LittleEndian(bytes, base_offset + 2 * width, width);
}

struct FoundSuperblock {
  uint64_t offset = 0;
  Superblock superblock;
};

std::optional<FoundSuperblock> FindSuperblock(uint64_t size_bytes, SuperblockReader read) {
  // The specification puts it at 0, 512, and every doubling of that.
  for (uint64_t offset = 0; offset + 16 <= size_bytes; offset = offset == 0 ? 512 : offset * 2) {
    const uint64_t length = std::min<uint64_t>(kSuperblockBytesMax, size_bytes - offset);
    const absl::StatusOr<std::string> bytes = read({offset, length});
    if (!bytes.ok()) return std::nullopt;
    const std::optional<Superblock> superblock = ParseSuperblock(*bytes);
    if (superblock) return FoundSuperblock{offset, *superblock};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Superblock> ParseSuperblock(std::string_view bytes) {
  if (bytes.size() < 16 || LooksLikeSuperblock(bytes) == HasSuperblock::kNo) return std::nullopt;
  Superblock result;
  result.version = static_cast<uint8_t>(bytes[8]);
  switch (result.version) {
    case 0:
      result.end_of_file = EndOfFile(bytes, 24, static_cast<uint8_t>(bytes[13]));
      return result;
    case 1:
      result.end_of_file = EndOfFile(bytes, 28, static_cast<uint8_t>(bytes[13]));
      return result;
    case 3:
      result.consistency_flags = static_cast<uint8_t>(bytes[11]);
      [[fallthrough]];
    case 2:
      result.end_of_file = EndOfFile(bytes, 12, static_cast<uint8_t>(bytes[9]));
      return result;
    default:
      return result;  // A newer version than we know: only the signature is certain.
  }
}

std::optional<uint64_t> UserBlockBytes(uint64_t size_bytes, SuperblockReader read) {
  const std::optional<FoundSuperblock> found = FindSuperblock(size_bytes, read);
  if (!found) return std::nullopt;
  return found->offset;
}

Hdf5State LookAtHdf5(uint64_t size_bytes, SuperblockReader read) {
  const std::optional<FoundSuperblock> found = FindSuperblock(size_bytes, read);
  if (!found) return Hdf5State::kNotHdf5;
  const Superblock& superblock = found->superblock;
  if (superblock.consistency_flags & kWriterFlags) return Hdf5State::kOpen;
  if (superblock.end_of_file.value_or(0) > size_bytes) return Hdf5State::kCutShort;
  return Hdf5State::kClosed;
}

}  // namespace h5mirror
