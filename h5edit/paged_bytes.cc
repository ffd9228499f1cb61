#include "h5edit/paged_bytes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace h5mirror::edit {
namespace {

// The base as it is, without what was cut off of it.
absl::Status ReadBase(EnvFile& base, uint64_t end, uint64_t offset, absl::Span<char> out) {
  const uint64_t there = offset >= end ? 0 : std::min<uint64_t>(out.size(), end - offset);
  std::memset(out.data() + there, 0, out.size() - there);
  return there == 0 ? absl::OkStatus() : ReadOrZeros(base, offset, out.first(there));
}

}  // namespace

absl::Status PagedBytes::Read(uint64_t offset, absl::Span<char> out) {
  H5M_RETURN_IF_ERROR(ReadBase(base_, std::min(base_end_, base_size_), offset, out));
  const uint64_t end = offset + out.size();
  for (auto page = pages_.lower_bound(offset / kPageBytes); page != pages_.end(); ++page) {
    const uint64_t begin = page->first * kPageBytes;
    if (begin >= end) break;
    const uint64_t from = std::max(begin, offset), to = std::min(begin + kPageBytes, end);
    std::memcpy(out.data() + (from - offset), page->second.data() + (from - begin), to - from);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string*> PagedBytes::PageAt(uint64_t page) {
  const auto [at, is_new] = pages_.try_emplace(page);
  if (!is_new) return &at->second;
  at->second.assign(kPageBytes, '\0');
  const absl::Status read = ReadBase(base_, std::min(base_end_, base_size_), page * kPageBytes,
                                     absl::MakeSpan(at->second));
  if (read.ok()) return &at->second;
  pages_.erase(at);
  return read;
}

absl::Status PagedBytes::Write(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const uint64_t skip = offset % kPageBytes;
    const size_t length = std::min<uint64_t>(bytes.size(), kPageBytes - skip);
    H5M_ASSIGN_OR_RETURN(std::string* const page, PageAt(offset / kPageBytes));
    std::memcpy(page->data() + skip, bytes.data(), length);
    offset += length;
    bytes.remove_prefix(length);
  }
  size_ = std::max(size_, offset);
  return absl::OkStatus();
}

absl::Status PagedBytes::Truncate(uint64_t size_bytes) {
  if (size_bytes < size_) {
    base_end_ = std::min(base_end_, size_bytes);
    const uint64_t partial = size_bytes % kPageBytes;
    pages_.erase(pages_.lower_bound(size_bytes / kPageBytes + (partial == 0 ? 0 : 1)),
                 pages_.end());
    const auto last = pages_.find(size_bytes / kPageBytes);
    if (partial != 0 && last != pages_.end())
      std::memset(last->second.data() + partial, 0, kPageBytes - partial);
  }
  size_ = size_bytes;
  return absl::OkStatus();
}

absl::StatusOr<store::JournalCut> PagedBytes::Changes() const {
  store::JournalCut cut;
  cut.size_before = base_size_;
  cut.size_after = size_;
  // Pages that were cut off and are not written again have their bytes in the journal, too: only so
  // can the way back be gone.
  std::map<uint64_t, const std::string*> touched;
  for (const auto& [number, page] : pages_) touched[number] = &page;
  for (uint64_t page = base_end_ / kPageBytes; page * kPageBytes < base_size_; ++page)
    touched.try_emplace(page, nullptr);
  for (const auto& [number, content] : touched) {
    store::JournalPage page;
    page.offset = number * kPageBytes;
    const auto length = [&](uint64_t size) {
      return std::min(size, page.offset + kPageBytes) - std::min(size, page.offset);
    };
    page.before.assign(length(base_size_), '\0');
    H5M_RETURN_IF_ERROR(ReadOrZeros(base_, page.offset, absl::MakeSpan(page.before)));
    page.after.assign(length(size_), '\0');
    if (content != nullptr) {
      page.after = content->substr(0, page.after.size());
    } else {
      H5M_RETURN_IF_ERROR(ReadBase(base_, base_end_, page.offset, absl::MakeSpan(page.after)));
    }
    if (page.before != page.after) cut.pages.push_back(std::move(page));
  }
  return cut;
}

void PagedBytes::Forget() {
  pages_.clear();
  base_size_ = size_;
  base_end_ = UINT64_MAX;
}

}  // namespace h5mirror::edit
