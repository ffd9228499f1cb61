// The superblock of an HDF5 file as of a moment at which a writer had it open.
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

// So many bytes hold any superblock of version 2 or 3.
inline constexpr size_t kSuperblockImageBytes = 48;
// Fewer do not reach beyond its flags.
inline constexpr size_t kSuperblockFlagsEnd = 12;

enum class HasSuperblock : uint8_t { kNo, kYes };

// Whether `bytes` begin with HDF5's signature.
HasSuperblock LooksLikeSuperblock(std::string_view bytes);

// What to put over the beginning of the superblock at `offset`, which `bytes` begin with, so that
// the file of `size_bytes` opens as one that was closed: the flags of a writer are cleared, and
// where it was an SWMR writer, which keeps no end of file there, the end is set to `size_bytes`;
// the checksum is made right. An SWMR writer is known by its flag, or by an end that lies before
// `size_bytes`. Unset: it is right as it is, or none that has flags.
std::optional<std::string> ClosedSuperblock(std::string_view bytes, uint64_t offset,
                                            uint64_t size_bytes);

// Whether the superblock that `bytes` begin with has the flag of an SWMR writer, which is at work
// or was killed.
enum class HasSwmrFlag : uint8_t { kNo, kYes };
HasSwmrFlag SwmrFlagIn(std::string_view bytes);

// Whether the superblock that `bytes` begin with has the flag of any writer. Only those of version
// 3 have it, and only where the writer locks files.
enum class HasWriterFlag : uint8_t { kNo, kYes };
HasWriterFlag WriterFlagIn(std::string_view bytes);

// The superblock that `bytes` begin with, with the flags that HDF5 sets for SWMR writers: without
// both, nobody can open it for SWMR reading (H5F_open). Unset: it has both, or cannot have them.
std::optional<std::string> SwmrSuperblock(std::string_view bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SUPERBLOCK_IMAGE_H_
