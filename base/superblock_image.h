// The superblock of an HDF5 file that was cut while a writer had it open.
//
// Source: HDF5 File Format Specification, version 3.0, section II.A, "Disk Format: Level 0A -
// Format Signature and Superblock", versions 2 and 3.
#ifndef H5MIRROR_BASE_SUPERBLOCK_IMAGE_H_
#define H5MIRROR_BASE_SUPERBLOCK_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h5mirror {

// The length of the longest superblock of version 2 or 3.
inline constexpr size_t kSuperblockImageBytes = 48;
// The end of the superblock's flags: fewer bytes do not hold all of them.
inline constexpr size_t kSuperblockFlagsEnd = 12;

enum class HasSuperblock : uint8_t { kNo, kYes };

// Whether `bytes` begin with HDF5's signature.
HasSuperblock LooksLikeSuperblock(std::string_view bytes);

// The superblock of the same file when closed. `bytes` begin with the superblock at `offset`; the
// result is to be written over it. Clears the writer's flags, and computes the checksum. An SWMR
// writer leaves an old end of file there: then sets the end to `size_bytes`. Its sign is its flag,
// or an end before `size_bytes`. Unset: the superblock needs no change, or has no flags.
std::optional<std::string> ClosedSuperblock(std::string_view bytes, uint64_t offset,
                                            uint64_t size_bytes);

// Whether the superblock at the beginning of `bytes` has the flag of an SWMR writer. Such a writer
// is at work or was killed.
enum class HasSwmrFlag : uint8_t { kNo, kYes };
HasSwmrFlag SwmrFlagIn(std::string_view bytes);
// As SwmrFlagIn(), but `bytes` may hold only a part of the superblock: a program may write it in
// parts.
HasSwmrFlag SwmrFlagAtFront(std::string_view bytes);

// Whether the superblock at the beginning of `bytes` has the flag of any writer. Only version 3 has
// it, and only if the writer locks files.
enum class HasWriterFlag : uint8_t { kNo, kYes };
HasWriterFlag WriterFlagIn(std::string_view bytes);

// `bytes` with zeros for the writer's flags, and for the checksum that covers them. Unset: `bytes`
// do not begin with a superblock. HDF5 sets the flags at each open for writing and clears them at
// the close, if its outermost driver locks files.
std::optional<std::string> WithoutWriterFlags(std::string_view bytes);

// The superblock at the beginning of `bytes` with both flags that HDF5 sets for SWMR writers.
// Without both the file cannot be opened for SWMR reading (H5F_open). Unset: it has both, or cannot
// have them.
std::optional<std::string> SwmrSuperblock(std::string_view bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SUPERBLOCK_IMAGE_H_
