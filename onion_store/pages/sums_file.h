// A checksum for every page of a head at its applied cut. On disk:
// docs/reference/format.md, "Sums".
#ifndef H5MIRROR_ONION_STORE_PAGES_SUMS_FILE_H_
#define H5MIRROR_ONION_STORE_PAGES_SUMS_FILE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/env.h"

namespace h5mirror::store {

// Thread-safe for readers beside one writer.
class SumsFile {
 public:
  SumsFile(std::unique_ptr<EnvFile> file, uint32_t page_size_bytes);

  // The stored form of one page's checksum: 0 for a page of zeros, so that holes need no entry.
  uint32_t SumOf(std::string_view page) const;
  // The crc32c of the page whose stored form is `sum`.
  uint32_t CrcOf(uint32_t sum) const { return sum ^ zero_crc_; }
  // SumOf() each page of `bytes`, whose size is a multiple of the page's.
  std::vector<uint32_t> SumsOf(std::string_view bytes) const;

  absl::StatusOr<std::vector<uint32_t>> Read(uint64_t first_page, uint64_t page_count);
  absl::Status Write(uint64_t first_page, absl::Span<const uint32_t> sums);
  // The first pages at or after `page` that may have a sum other than 0; length 0: none.
  absl::StatusOr<Extent> NextPages(uint64_t page);
  // Sets the sums of pages to 0, even if they seem to be 0 already.
  absl::Status Clear(uint64_t first_page, uint64_t page_count);
  // Forgets pages at or beyond `page_count`. `again`: even if an attempt whose sync failed seems to
  // have done so already.
  absl::Status Truncate(uint64_t page_count, bool again = false);
  absl::Status Sync() { return file_->Sync(); }
  EnvFile& file() { return *file_; }

 private:
  std::unique_ptr<EnvFile> file_;
  const uint32_t page_size_bytes_;
  const uint32_t zero_crc_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_SUMS_FILE_H_
