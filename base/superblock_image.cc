#include "base/superblock_image.h"

#include <bit>

namespace h5mirror {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr size_t kVersionAt = 8;
constexpr size_t kAddressBytesAt = 9;
constexpr size_t kFlagsAt = 11;
constexpr size_t kBaseAddressAt = 12;
constexpr size_t kOldFlagsAt = 20;  // of versions 0 and 1
constexpr size_t kOldFlagsBytes = 4;
constexpr uint8_t kWriteAccess = 0x01;
constexpr uint8_t kSwmr = 0x04;
constexpr uint8_t kSwmrVersion = 3;  // SWMR writers need it.

uint64_t Load(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

void Store(std::string* bytes, size_t at, size_t width, uint64_t value) {
  for (size_t i = 0; i < width; ++i) (*bytes)[at + i] = static_cast<char>(value >> (8 * i));
}

// Bob Jenkins' lookup3 (burtleburtle.net/bob/hash, "hashlittle"), which the specification names as
// the checksum of metadata, with the initial value 0.
uint32_t Lookup3(std::string_view bytes) {
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(bytes.size()), b = a, c = a;
  const auto add = [&](size_t at, size_t length) {
    uint32_t* const words[] = {&a, &b, &c};
    for (size_t i = 0; i < length; ++i) {
      *words[i / 4] += uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * (i % 4));
    }
  };
  const auto mix = [](uint32_t& x, uint32_t& y, uint32_t& z, int bits) {
    x -= z;
    x ^= std::rotl(z, bits);
    z += y;
  };
  const auto end = [](uint32_t& x, uint32_t y, int bits) {
    x ^= y;
    x -= std::rotl(y, bits);
  };
  size_t at = 0;
  for (; bytes.size() - at > 12; at += 12) {
    add(at, 12);
    mix(a, b, c, 4), mix(b, c, a, 6), mix(c, a, b, 8);
    mix(a, b, c, 16), mix(b, c, a, 19), mix(c, a, b, 4);
  }
  if (bytes.size() == at) return c;
  add(at, bytes.size() - at);
  end(c, b, 14), end(a, c, 11), end(b, a, 25), end(c, b, 16);
  end(a, c, 4), end(b, a, 14), end(c, b, 24);
  return c;
}

// The offset of the checksum. Unset: the superblock is not of version 2 or 3, or not whole.
std::optional<size_t> ChecksumAt(std::string_view bytes) {
  if (bytes.size() < kBaseAddressAt || LooksLikeSuperblock(bytes) == HasSuperblock::kNo) {
    return std::nullopt;
  }
  const auto version = static_cast<uint8_t>(bytes[kVersionAt]);
  if (version != 2 && version != kSwmrVersion) return std::nullopt;
  const size_t width = static_cast<uint8_t>(bytes[kAddressBytesAt]);
  const size_t checksum_at = kBaseAddressAt + 4 * width;
  if (width < 2 || width > 8 || bytes.size() < checksum_at + 4) return std::nullopt;
  return checksum_at;
}

}  // namespace

HasSuperblock LooksLikeSuperblock(std::string_view bytes) {
  return bytes.starts_with(kSignature) ? HasSuperblock::kYes : HasSuperblock::kNo;
}

std::optional<std::string> ClosedSuperblock(std::string_view bytes, uint64_t offset,
                                            uint64_t size_bytes) {
  const std::optional<size_t> checksum_at = ChecksumAt(bytes);
  if (!checksum_at) return std::nullopt;
  const auto version = static_cast<uint8_t>(bytes[kVersionAt]);
  const auto flags = static_cast<uint8_t>(bytes[kFlagsAt]);
  const size_t width = static_cast<uint8_t>(bytes[kAddressBytesAt]);
  // If the superblock is not at its base address, HDF5 corrects the end by the difference.
  const uint64_t end = size_bytes + Load(bytes, kBaseAddressAt, width) - offset;
  const size_t end_at = kBaseAddressAt + 2 * width;
  // A file that was opened with H5F_ACC_SWMR_WRITE through a driver without locks has no flags.
  const bool is_swmr =
      (flags & kSwmr) != 0 || (version == kSwmrVersion && Load(bytes, end_at, width) < end);
  if ((flags & kWriteAccess) == 0 && !is_swmr) return std::nullopt;
  std::string image(bytes.substr(0, *checksum_at + 4));
  image[kFlagsAt] = static_cast<char>(flags & ~(kWriteAccess | kSwmr));
  if (is_swmr) Store(&image, end_at, width, end);
  Store(&image, *checksum_at, 4, Lookup3(std::string_view(image).substr(0, *checksum_at)));
  return image;
}

HasSwmrFlag SwmrFlagAtFront(std::string_view bytes) {
  const bool has =
      bytes.size() >= kSuperblockFlagsEnd && LooksLikeSuperblock(bytes) == HasSuperblock::kYes &&
      bytes[kVersionAt] == kSwmrVersion && (static_cast<uint8_t>(bytes[kFlagsAt]) & kSwmr) != 0;
  return has ? HasSwmrFlag::kYes : HasSwmrFlag::kNo;
}

HasSwmrFlag SwmrFlagIn(std::string_view bytes) {
  return ChecksumAt(bytes) ? SwmrFlagAtFront(bytes) : HasSwmrFlag::kNo;
}

HasWriterFlag WriterFlagIn(std::string_view bytes) {
  const bool has = ChecksumAt(bytes) && bytes[kVersionAt] == kSwmrVersion &&
                   (static_cast<uint8_t>(bytes[kFlagsAt]) & (kWriteAccess | kSwmr)) != 0;
  return has ? HasWriterFlag::kYes : HasWriterFlag::kNo;
}

std::optional<std::string> WithoutWriterFlags(std::string_view bytes) {
  if (bytes.size() <= kVersionAt || LooksLikeSuperblock(bytes) == HasSuperblock::kNo) {
    return std::nullopt;
  }
  std::string image(bytes);
  if (static_cast<uint8_t>(bytes[kVersionAt]) <= 1) {
    if (bytes.size() < kOldFlagsAt + kOldFlagsBytes) return std::nullopt;
    Store(&image, kOldFlagsAt, kOldFlagsBytes, 0);
    return image;
  }
  const std::optional<size_t> checksum_at = ChecksumAt(bytes);
  if (!checksum_at) return std::nullopt;
  image[kFlagsAt] = 0;
  Store(&image, *checksum_at, 4, 0);
  return image;
}

std::optional<std::string> SwmrSuperblock(std::string_view bytes) {
  const std::optional<size_t> checksum_at = ChecksumAt(bytes);
  if (!checksum_at || bytes[kVersionAt] != kSwmrVersion) return std::nullopt;
  const uint8_t flags = static_cast<uint8_t>(bytes[kFlagsAt]) | kWriteAccess | kSwmr;
  if (static_cast<char>(flags) == bytes[kFlagsAt]) return std::nullopt;
  std::string image(bytes.substr(0, *checksum_at + 4));
  image[kFlagsAt] = static_cast<char>(flags);
  Store(&image, *checksum_at, 4, Lookup3(std::string_view(image).substr(0, *checksum_at)));
  return image;
}

}  // namespace h5mirror
