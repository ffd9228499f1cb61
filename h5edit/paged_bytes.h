// Changes over a file that stays as it is: pages in memory.
#ifndef H5MIRROR_H5EDIT_PAGED_BYTES_H_
#define H5MIRROR_H5EDIT_PAGED_BYTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::edit {

// Not thread-safe.
class PagedBytes {
 public:
  // `base` must outlive this. It may only change by the changes that Take() gave out.
  PagedBytes(EnvFile& base, uint64_t size_bytes)
      : base_(base), base_size_(size_bytes), size_(size_bytes) {}

  uint64_t size_bytes() const { return size_; }
  absl::Status Read(uint64_t offset, absl::Span<char> out);
  absl::Status Write(uint64_t offset, std::string_view bytes);
  absl::Status Truncate(uint64_t size_bytes);

  // Whether anything differs from the base.
  bool changed() const { return !pages_.empty() || size_ != base_size_; }
  // All that differs, page by page; pages rewritten with equal bytes are not among it.
  absl::StatusOr<store::JournalCut> Changes() const;
  // The base has them now.
  void Forget();

 private:
  static constexpr uint64_t kPageBytes = 4096;
  absl::StatusOr<std::string*> PageAt(uint64_t page);

  EnvFile& base_;
  uint64_t base_size_;
  uint64_t base_end_ = UINT64_MAX;  // what the base holds from here on was cut off
  uint64_t size_;
  std::map<uint64_t, std::string> pages_;  // whole ones, by number
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_PAGED_BYTES_H_
