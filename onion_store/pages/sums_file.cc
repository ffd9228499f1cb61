#include "onion_store/pages/sums_file.h"

#include <algorithm>
#include <string>

#include "base/crc32c.h"
#include "base/status_macros.h"

namespace h5mirror::store {

SumsFile::SumsFile(std::unique_ptr<EnvFile> file, uint32_t page_size_bytes)
    : file_(std::move(file)),
      page_size_bytes_(page_size_bytes),
      zero_crc_(Crc32c(std::string(page_size_bytes, '\0'))) {}

uint32_t SumsFile::SumOf(std::string_view page) const { return Crc32c(page) ^ zero_crc_; }

std::vector<uint32_t> SumsFile::SumsOf(std::string_view bytes) const {
  std::vector<uint32_t> sums;
  sums.reserve(bytes.size() / page_size_bytes_);
  for (size_t at = 0; at < bytes.size(); at += page_size_bytes_) {
    sums.push_back(SumOf(bytes.substr(at, page_size_bytes_)));
  }
  return sums;
}

absl::StatusOr<std::vector<uint32_t>> SumsFile::Read(uint64_t first_page, uint64_t page_count) {
  std::vector<uint32_t> sums(page_count);
  absl::Span<char> bytes(reinterpret_cast<char*>(sums.data()), page_count * sizeof(uint32_t));
  H5M_RETURN_IF_ERROR(ReadOrZeros(*file_, first_page * sizeof(uint32_t), bytes));
  return sums;
}

absl::Status SumsFile::Write(uint64_t first_page, absl::Span<const uint32_t> sums) {
  std::string_view bytes(reinterpret_cast<const char*>(sums.data()),
                         sums.size() * sizeof(uint32_t));
  return WriteAt(*file_, first_page * sizeof(uint32_t), bytes);
}

absl::StatusOr<Extent> SumsFile::NextPages(uint64_t page) {
  H5M_ASSIGN_OR_RETURN(Extent data, file_->NextData(page * sizeof(uint32_t)));
  uint64_t first = data.offset / sizeof(uint32_t);
  uint64_t end = (data.end() + sizeof(uint32_t) - 1) / sizeof(uint32_t);
  return Extent{first, data.length == 0 ? 0 : end - first};
}

absl::Status SumsFile::Clear(uint64_t first_page, uint64_t page_count) {
  return file_->Zero({first_page * sizeof(uint32_t), page_count * sizeof(uint32_t)});
}

absl::Status SumsFile::Truncate(uint64_t page_count, bool again) {
  H5M_ASSIGN_OR_RETURN(uint64_t size, file_->Size());
  uint64_t wanted = page_count * sizeof(uint32_t);
  return size > wanted || again ? file_->Truncate(std::min(size, wanted)) : absl::OkStatus();
}

}  // namespace h5mirror::store
