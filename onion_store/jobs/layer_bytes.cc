#include "onion_store/jobs/layer_bytes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr uint64_t kPageBytesMin = 512;

class VersionBytes final : public LayerBytes {
 public:
  VersionBytes(std::unique_ptr<VersionReader> version, uint64_t begin)
      : version_(std::move(version)), at_(begin) {}

  uint64_t position() const override { return at_; }

 private:
  absl::StatusOr<Extent> Next(uint64_t length_max) override {
    const uint64_t size_bytes = version_->info().size_bytes;
    if (at_ >= size_bytes) return Extent{};
    H5M_ASSIGN_OR_RETURN(const Extent data, version_->NextData(at_));
    const uint64_t begin = std::max(data.offset, at_);
    if (data.length == 0 || begin >= size_bytes) return Extent{};
    const uint64_t end = std::min({data.end(), size_bytes, begin + length_max});
    at_ = end;
    return Extent{begin, end - begin};
  }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    return version_->Read(offset, out);
  }
  bool skips_zeros() const override { return true; }
  uint64_t page_bytes() const override { return version_->page_size_bytes(); }

  const std::unique_ptr<VersionReader> version_;
  uint64_t at_;
};

class ChangedBytes final : public LayerBytes {
 public:
  ChangedBytes(std::unique_ptr<VersionReader> version, std::unique_ptr<ChangeReader> changes)
      : version_(std::move(version)), changes_(std::move(changes)) {}

 private:
  absl::StatusOr<Extent> Next(uint64_t length_max) override {
    const uint64_t size_bytes = version_->info().size_bytes;
    while (next_ < ranges_.size() || more_) {
      if (next_ == ranges_.size()) {
        next_ = 0;
        H5M_ASSIGN_OR_RETURN(more_, changes_->Next(&ranges_));
        continue;
      }
      Extent& range = ranges_[next_];
      const uint64_t end = std::min({range.end(), size_bytes, range.offset + length_max});
      if (end <= range.offset) {  // All of it is beyond the version's end.
        ++next_;
        continue;
      }
      const Extent found{range.offset, end - range.offset};
      range.length -= found.length;
      range.offset = end;
      if (range.length == 0) ++next_;
      return found;
    }
    return Extent{};
  }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    return version_->Read(offset, out);
  }
  uint64_t page_bytes() const override { return version_->page_size_bytes(); }

  const std::unique_ptr<VersionReader> version_;
  const std::unique_ptr<ChangeReader> changes_;
  std::vector<Extent> ranges_;
  size_t next_ = 0;  // of `ranges_`
  bool more_ = true;
};

class FileBytes final : public LayerBytes {
 public:
  FileBytes(std::unique_ptr<EnvFile> file, uint64_t size_bytes)
      : file_(std::move(file)), size_bytes_(size_bytes) {}

 private:
  absl::StatusOr<Extent> Next(uint64_t length_max) override {
    const Extent next{at_, std::min(length_max, size_bytes_ - at_)};
    at_ = next.end();
    return next;
  }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    return ReadOrZeros(*file_, offset, out);
  }

  const std::unique_ptr<EnvFile> file_;
  const uint64_t size_bytes_;
  uint64_t at_ = 0;
};

}  // namespace

absl::StatusOr<bool> LayerBytes::Fill(Part* part, std::vector<Extent>* lost) {
  // A damaged range may become as many extents as it has pages.
  constexpr size_t kExtentsEnough = kPartExtentsMax - kPieceBytes / kPageBytesMin;
  while (part->bytes.size() < kPartDataBytesMax && part->extents.size() < kExtentsEnough) {
    H5M_ASSIGN_OR_RETURN(const Extent next,
                         Next(std::min(kPieceBytes, kPartDataBytesMax - part->bytes.size())));
    if (next.length == 0) return false;
    H5M_RETURN_IF_ERROR(Take(next, part, lost));
  }
  return true;
}

absl::Status LayerBytes::Take(const Extent& range, Part* part, std::vector<Extent>* lost) {
  const size_t at = part->bytes.size();
  part->bytes.resize(at + range.length);
  const absl::Status read = Read(range.offset, absl::MakeSpan(part->bytes).subspan(at));
  if (absl::IsDataLoss(read) && page_bytes() != 0) {
    part->bytes.resize(at);
    const uint64_t first_end = RoundDown(range.offset, page_bytes()) + page_bytes();
    if (range.end() <= first_end) {
      if (damage_.empty()) damage_ = ToStd(read.message());
      if (!lost->empty() && lost->back().end() == range.offset) {
        lost->back().length += range.length;
      } else {
        lost->push_back(range);
      }
      return absl::OkStatus();
    }
    for (uint64_t from = range.offset; from < range.end();) {
      const uint64_t end = std::min(RoundDown(from, page_bytes()) + page_bytes(), range.end());
      H5M_RETURN_IF_ERROR(Take({from, end - from}, part, lost));
      from = end;
    }
    return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(read);
  if (skips_zeros() && IsZero(std::string_view(part->bytes).substr(at))) {
    part->bytes.resize(at);
  } else if (!part->extents.empty() && part->extents.back().end() == range.offset) {
    part->extents.back().length += range.length;
  } else {
    part->extents.push_back(range);
  }
  return absl::OkStatus();
}

std::unique_ptr<LayerBytes> LayerBytes::OfVersion(std::unique_ptr<VersionReader> version,
                                                  uint64_t begin) {
  return std::make_unique<VersionBytes>(std::move(version), begin);
}

std::unique_ptr<LayerBytes> LayerBytes::OfChanges(std::unique_ptr<VersionReader> version,
                                                  std::unique_ptr<ChangeReader> changes) {
  return std::make_unique<ChangedBytes>(std::move(version), std::move(changes));
}

std::unique_ptr<LayerBytes> LayerBytes::OfFile(std::unique_ptr<EnvFile> file, uint64_t size_bytes) {
  return std::make_unique<FileBytes>(std::move(file), size_bytes);
}

}  // namespace h5mirror::store
