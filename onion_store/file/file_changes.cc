#include "onion_store/file/file_changes.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

// 2^17 ranges of 16 bytes.
constexpr size_t kRowsMax = 1 << 17;
constexpr size_t kRangesAtOnce = 1000;
constexpr uint64_t kCompareBytes = 1 << 20;
// The bytes compared in one call: between calls the caller may check whether the result is still
// wanted.
constexpr uint64_t kCompareAtOnce = 64 << 20;

void Append(Extent extent, std::vector<Extent>* ranges) {
  if (!ranges->empty() && ranges->back().end() == extent.offset) {
    ranges->back().length += extent.length;
  } else {
    ranges->push_back(extent);
  }
}

}  // namespace

absl::Status RowChanges::Load(size_t rows_max) {
  H5M_ASSIGN_OR_RETURN(auto pages,
                       index_->FindChangedPages(generation_, version_min_, version_end_, rows_max));
  if (!pages) return absl::OkStatus();  // Block by block, then.
  for (const Extent& run : *pages) {
    extents_.push_back({run.offset * page_size_bytes_, run.length * page_size_bytes_});
  }
  loaded_end_ = UINT64_MAX;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Extent>> RowChanges::NextAt(uint64_t offset) {
  while (true) {
    while (next_ < extents_.size() && extents_[next_].end() <= offset) ++next_;
    if (next_ < extents_.size()) {
      const Extent found = extents_[next_];
      const uint64_t begin = std::max(found.offset, offset);
      return Extent{begin, found.end() - begin};
    }
    if (loaded_end_ == UINT64_MAX) return std::nullopt;
    const uint64_t page = std::max(loaded_end_, offset) / page_size_bytes_;
    H5M_ASSIGN_OR_RETURN(auto next, index_->NextPage(generation_, version_min_, page));
    if (!next) {
      loaded_end_ = UINT64_MAX;
      return std::nullopt;
    }
    H5M_RETURN_IF_ERROR(LoadBlock(RoundDown(*next, kBlockPages)));
  }
}

absl::Status RowChanges::LoadBlock(uint64_t first_page) {
  const uint64_t end_page = first_page + kBlockPages;
  // Of the runs at one place the oldest comes first: if that is too new, all are.
  H5M_ASSIGN_OR_RETURN(auto runs,
                       index_->FindPages(generation_, version_min_, first_page, end_page));
  std::vector<bool> changed(kBlockPages, false);
  for (const PageRun& run : runs) {
    if (run.version >= version_end_) continue;
    for (uint64_t page = std::max(run.page, first_page); page < std::min(run.page_end(), end_page);
         ++page) {
      changed[page - first_page] = true;
    }
  }
  extents_.clear();
  next_ = 0;
  for (uint64_t i = 0; i < kBlockPages; ++i) {
    if (changed[i]) Append({(first_page + i) * page_size_bytes_, page_size_bytes_}, &extents_);
  }
  loaded_end_ = end_page * page_size_bytes_;
  return absl::OkStatus();
}

WrittenChanges::WrittenChanges(std::shared_ptr<FileImpl> file, VersionInfo from, VersionInfo to,
                               std::vector<LayerPtr> layers, RowChanges rows,
                               uint32_t page_size_bytes)
    : file_(std::move(file)),
      from_(std::move(from)),
      to_(std::move(to)),
      layers_(std::move(layers)),
      rows_(std::move(rows)),
      page_size_bytes_(page_size_bytes),
      shared_bytes_(std::min(from_.size_bytes, to_.size_bytes)),
      end_bytes_(std::max(from_.size_bytes, to_.size_bytes)) {}

absl::StatusOr<std::optional<Extent>> WrittenChanges::NextAt(uint64_t offset) {
  std::optional<Extent> first;
  const auto take = [&first](std::optional<Extent> next) {
    if (next && (!first || next->offset < first->offset)) first = next;
  };
  H5M_ASSIGN_OR_RETURN(auto row, rows_.NextAt(offset));
  take(row);
  const auto take_from = [&](uint64_t begin, uint64_t end) {
    if (std::max(begin, offset) < end) {
      take(Extent{std::max(begin, offset), end - std::max(begin, offset)});
    }
  };
  for (const LayerPtr& layer : layers_) {
    H5M_ASSIGN_OR_RETURN(auto staged, layer->data.NextStaged(offset));
    take(staged);
    take(layer->data.direct().NextAfter(offset));
    take_from(layer->data.truncated_to(), shared_bytes_);
  }
  take_from(shared_bytes_, end_bytes_);
  if (!first || first->offset >= end_bytes_) return std::nullopt;
  const uint64_t begin = std::max(RoundDown(first->offset, page_size_bytes_), offset);
  const uint64_t end = std::min(RoundUp(first->end(), page_size_bytes_), end_bytes_);
  return Extent{begin, end - begin};
}

absl::StatusOr<bool> WrittenChanges::Next(std::vector<Extent>* ranges) {
  ranges->clear();
  while (ranges->size() < kRangesAtOnce) {
    H5M_ASSIGN_OR_RETURN(auto next, NextAt(at_));
    if (!next) {
      H5M_RETURN_IF_ERROR(CheckRetained());
      return false;
    }
    Append(*next, ranges);
    at_ = next->end();
  }
  return true;
}

absl::Status WrittenChanges::CheckRetained() {
  H5M_RETURN_IF_ERROR(file_->dead());
  H5M_RETURN_IF_ERROR(file_->GetVersion(from_.version).status());
  return file_->GetVersion(to_.version).status();
}

ComparedChanges::ComparedChanges(std::unique_ptr<VersionReader> from,
                                 std::unique_ptr<VersionReader> to, MemoryBudget& budget)
    : from_(std::move(from)),
      to_(std::move(to)),
      charge_(budget, 2 * kCompareBytes),
      end_bytes_(std::max(from_->info().size_bytes, to_->info().size_bytes)),
      one_(kCompareBytes),
      other_(kCompareBytes) {}

absl::StatusOr<uint64_t> ComparedChanges::NextData() {
  uint64_t next = end_bytes_;
  for (VersionReader* reader : {from_.get(), to_.get()}) {
    H5M_ASSIGN_OR_RETURN(const Extent data, reader->NextData(at_));
    if (data.length > 0) next = std::min(next, std::max(data.offset, at_));
  }
  return next;
}

absl::StatusOr<bool> ComparedChanges::Next(std::vector<Extent>* ranges) {
  ranges->clear();
  const uint64_t page_bytes = page_size_bytes();
  for (uint64_t done = 0; done < kCompareAtOnce && ranges->size() < kRangesAtOnce;
       done += kCompareBytes) {
    H5M_ASSIGN_OR_RETURN(const uint64_t data, NextData());
    if (data >= end_bytes_) return false;
    at_ = std::max(at_, RoundDown(data, page_bytes));
    const uint64_t length = std::min(kCompareBytes, end_bytes_ - at_);
    H5M_RETURN_IF_ERROR(from_->Read(at_, {one_.data(), length}));
    H5M_RETURN_IF_ERROR(to_->Read(at_, {other_.data(), length}));
    for (uint64_t i = 0; i < length; i += page_bytes) {
      const uint64_t part = std::min(page_bytes, length - i);
      if (std::memcmp(&one_[i], &other_[i], part) != 0) Append({at_ + i, part}, ranges);
    }
    at_ += length;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<ChangeReader>> FileImpl::OpenChanges(VersionNumber from,
                                                                    VersionNumber to) {
  H5M_ASSIGN_OR_RETURN(VersionInfo from_info, GetVersion(from));
  H5M_ASSIGN_OR_RETURN(VersionInfo to_info, GetVersion(to));
  if (from_info.generation != to_info.generation) {
    H5M_ASSIGN_OR_RETURN(auto one, OpenVersion(from_info.version));
    H5M_ASSIGN_OR_RETURN(auto other, OpenVersion(to_info.version));
    return std::make_unique<ComparedChanges>(std::move(one), std::move(other), context_->budget);
  }
  const auto [older, newer] = std::minmax(from_info.cut, to_info.cut);
  std::vector<LayerPtr> layers;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    index = index_;
    for (const LayerPtr& layer : cuts_.layers) {
      if (!layer->durable || layer->generation->number != to_info.generation) continue;
      if (layer->cut > older && layer->cut <= newer) layers.push_back(layer);
    }
  }
  // The rows are read after the layers: an apply puts a cut's rows there before the cut leaves
  // the layers.
  RowChanges rows(index, from_info.generation, std::min(from_info.version, to_info.version),
                  std::max(from_info.version, to_info.version), files_.page_size_bytes());
  H5M_RETURN_IF_ERROR(rows.Load(kRowsMax));
  return std::make_unique<WrittenChanges>(shared_from_this(), std::move(from_info),
                                          std::move(to_info), std::move(layers), std::move(rows),
                                          files_.page_size_bytes());
}

}  // namespace h5mirror::store
