// The checksum of frames and of records on disk: CRC-32C (Castagnoli), as in iSCSI, RFC 3720
// appendix B.4.
#ifndef H5MIRROR_BASE_CRC32C_H_
#define H5MIRROR_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace h5mirror {

// The checksum of two parts: the bytes that `crc` covers, then `data`. A `crc` of 0 covers no
// bytes.
uint32_t Crc32cExtend(uint32_t crc, std::string_view data);

inline uint32_t Crc32c(std::string_view data) { return Crc32cExtend(0, data); }

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CRC32C_H_
