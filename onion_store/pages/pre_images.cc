#include "onion_store/pages/pre_images.h"

#include <algorithm>

#include "base/status_macros.h"
#include "onion_store/disk/coding.h"
#include "onion_store/disk/raw_bytes.h"
#include "onion_store/pages/page_packing.h"

namespace h5mirror::store {
namespace {

// The level of the longest aligned run that starts at `page` and has at most `count` pages.
int LevelOfRun(uint64_t page, uint64_t count) {
  int level = 0;
  while (level < kPageLevelMax && page % (uint64_t{2} << level) == 0 &&
         (uint64_t{2} << level) <= count) {
    ++level;
  }
  return level;
}

}  // namespace

absl::Status PreImages::Save(uint64_t first_page, std::string_view bytes,
                             absl::Span<const uint32_t> crcs, const std::vector<bool>& wanted) {
  const Pages all{first_page, bytes, crcs};
  for (size_t i = 0; i < wanted.size();) {
    if (!wanted[i]) {
      ++i;
      continue;
    }
    const bool zero = IsZeroPage(all, i);
    size_t end = i + 1;
    while (end < wanted.size() && wanted[end] && IsZeroPage(all, end) == zero) ++end;
    const Pages part = all.Part(i, end - i, page_bytes_);
    if (zero) {
      SaveZeros(part);
    } else if (compression_ == PageCompression::kZstd) {
      H5M_RETURN_IF_ERROR(SavePacked(part));
    } else {
      H5M_RETURN_IF_ERROR(SavePlain(part));
    }
    i = end;
  }
  return absl::OkStatus();
}

bool PreImages::IsZeroPage(const Pages& pages, uint64_t page) const {
  return IsZero(pages.bytes.substr(page * page_bytes_, page_bytes_));
}

void PreImages::SaveZeros(const Pages& pages) {
  for (uint64_t i = 0; i < pages.crcs.size();) {
    const int level = LevelOfRun(pages.first + i, pages.crcs.size() - i);
    runs_->push_back({level, pages.first + i, version_, PageRun::kZeros, 0});
    i += uint64_t{1} << level;
  }
}

absl::Status PreImages::SavePlain(const Pages& pages) {
  for (uint64_t i = 0; i < pages.crcs.size();) {
    const int level = LevelOfRun(pages.first + i, pages.crcs.size() - i);
    const Pages part = pages.Part(i, uint64_t{1} << level, page_bytes_);
    H5M_ASSIGN_OR_RETURN(const PageRun run, pages_.Append(generation_, level, part.first, version_,
                                                          part.bytes, part.crcs));
    runs_->push_back(run);
    i += part.crcs.size();
  }
  return absl::OkStatus();
}

absl::Status PreImages::SavePacked(const Pages& pages) {
  uint64_t plain = 0;  // Pages from here on do not shrink.
  for (uint64_t i = 0; i < pages.crcs.size();) {
    const uint64_t count_max =
        std::min<uint64_t>(pages.crcs.size() - i, kPackedPagesBytes / page_bytes_);
    const int level = LevelOfRun(pages.first + i, count_max);
    const Pages part = pages.Part(i, uint64_t{1} << level, page_bytes_);
    if (PackPages(part.bytes, &packed_)) {
      H5M_RETURN_IF_ERROR(SavePlain(pages.Part(plain, i - plain, page_bytes_)));
      H5M_ASSIGN_OR_RETURN(const PageRun run, pages_.AppendPacked(generation_, level, part.first,
                                                                  version_, packed_, part.crcs));
      runs_->push_back(run);
      plain = i + part.crcs.size();
    }
    i += part.crcs.size();
  }
  return SavePlain(pages.Part(plain, pages.crcs.size() - plain, page_bytes_));
}

}  // namespace h5mirror::store
