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
// Fewer do not reach beyond its flags.
inline constexpr size_t kSuperblockFlagsEnd = 12;

enum class HasSuperblock : uint8_t { kNo, kYes };

// Whether `bytes` begin with HDF5's signature.
HasSuperblock LooksLikeSuperblock(std::string_view bytes);

// The bytes of a closed file's superblock, to be written over the one at `offset`, with which
// `bytes` begin. Clears the writer's flags, and computes the checksum. After an SWMR writer, which
// leaves an old end of file there, sets the end to `size_bytes`; such a writer is known by its
// flag, or by an end before `size_bytes`. Unset: the superblock needs no change, or has no flags.
std::optional<std::string> ClosedSuperblock(std::string_view bytes, uint64_t offset,
                                            uint64_t size_bytes);

// Whether the superblock at the beginning of `bytes` has the flag of an SWMR writer, which is at
// work or was killed.
enum class HasSwmrFlag : uint8_t { kNo, kYes };
HasSwmrFlag SwmrFlagIn(std::string_view bytes);
// The same of bytes that need not hold the superblock whole, as a program may write it in parts.
HasSwmrFlag SwmrFlagAtFront(std::string_view bytes);

// Whether the superblock at the beginning of `bytes` has the flag of any writer. Only version 3 has
// it, and only if the writer locks files.
enum class HasWriterFlag : uint8_t { kNo, kYes };
HasWriterFlag WriterFlagIn(std::string_view bytes);

// `bytes` with zeros for the writer's flags and the checksum over them, where a superblock begins
// them; else unset. HDF5 sets the flags at each open for writing and clears them at the close, if
// its outermost driver locks files.
std::optional<std::string> WithoutWriterFlags(std::string_view bytes);

// The superblock at the beginning of `bytes` with both flags that HDF5 sets for SWMR writers.
// Without both the file cannot be opened for SWMR reading (H5F_open). Unset: it has both, or cannot
// have them.
std::optional<std::string> SwmrSuperblock(std::string_view bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SUPERBLOCK_IMAGE_H_
