#include "client_vfd/session/outside_change.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/block_digest.h"
#include "base/status_macros.h"
#include "base/superblock.h"

namespace h5mirror::vfd {
namespace {

constexpr uint32_t kLargeBlockBytes = 1 << 20;
constexpr uint32_t kSmallBlockBytes = 4096;
// User blocks are of this size or a doubling of it.
constexpr uint32_t kUserBlockBytesMin = 512;
// The most ranges that the server takes in one call.
constexpr size_t kRangesMax = 65536;

class Comparison {
 public:
  Comparison(const std::string& name, const FileReader& file, AskDigests ask,
             absl::FunctionRef<bool()> is_late)
      : name_(name), file_(file), ask_(ask), is_late_(is_late), block_(kLargeBlockBytes, '\0') {}

  absl::StatusOr<v1::Version> Compare(uint32_t block_bytes, const ExtentSet& within,
                                      ExtentSet* differing) {
    v1::DigestFileRequest request;
    request.set_name(name_);
    request.set_block_size_bytes(block_bytes);
    for (const Extent& extent : within.ToVector()) {
      v1::ByteRange& range = *request.add_ranges();
      range.set_offset(extent.offset);
      range.set_length_bytes(extent.length);
    }
    return ask_(request, [&](Extent block, const BlockDigest& digest) -> absl::Status {
      if (is_late_()) {
        differing->Add(block);
        return absl::OkStatus();
      }
      H5M_RETURN_IF_ERROR(file_.Read(block, block_.data()));
      const BlockDigest ours = DigestOf(std::string_view(block_).substr(0, block.length));
      if (ours != digest) differing->Add(block);
      return absl::OkStatus();
    });
  }

 private:
  const std::string& name_;
  const FileReader& file_;
  AskDigests ask_;
  absl::FunctionRef<bool()> is_late_;
  std::string block_;
};

uint64_t UserBlockOf(const FileReader& file, uint64_t size_bytes) {
  const auto read = [&](Extent extent) -> absl::StatusOr<std::string> {
    std::string bytes(extent.length, '\0');
    H5M_RETURN_IF_ERROR(file.Read(extent, bytes.data()));
    return bytes;
  };
  return UserBlockBytes(size_bytes, read).value_or(0);
}

// The end of the last byte that has changed; 0: none has.
uint64_t EndOf(const Changes& changes) {
  uint64_t end = 0;
  for (const Extent& extent : changes.extents.ToVector()) end = std::max(end, extent.end());
  return end;
}

bool IsSame(const v1::Version& a, const v1::Version& b) {
  return a.version() == b.version() && a.cut() == b.cut();
}

// Narrows changes within the first block of 4 KiB down to blocks of 512 bytes. Leaves them as they
// are if the server is too old to compare such blocks, or has another version by now.
absl::Status CompareUserBlock(Comparison& comparison, const v1::Version& version, uint64_t size,
                              Changes* changes) {
  ExtentSet first;
  first.Add({0, std::min<uint64_t>(size, kSmallBlockBytes)});
  ExtentSet tiny;
  const absl::StatusOr<v1::Version> again = comparison.Compare(kUserBlockBytesMin, first, &tiny);
  if (absl::IsInvalidArgument(again.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(again.status());
  if (!IsSame(*again, version)) return absl::OkStatus();
  changes->extents = ExtentSet();
  changes->extents.AddAll(tiny);
  return absl::OkStatus();
}

// The blocks that differ from `version`, in large blocks or, where these are few, in small ones.
struct Difference {
  v1::Version version;
  ExtentSet blocks;
  bool is_fine = false;  // small blocks
};

// kFailedPrecondition: the newest version is not of `cut`, or another one was made meanwhile.
absl::StatusOr<Difference> CompareWith(Comparison& comparison, int64_t cut,
                                       absl::FunctionRef<bool()> is_late) {
  Difference difference;
  ExtentSet large;
  H5M_ASSIGN_OR_RETURN(difference.version,
                       comparison.Compare(kLargeBlockBytes, ExtentSet(), &large));
  const v1::Version& version = difference.version;
  if (version.cut() != cut) {
    return absl::FailedPreconditionError(absl::StrCat("version ", version.version(), " is of cut ",
                                                      version.cut(),
                                                      ", the file was closed as cut ", cut));
  }
  difference.is_fine = !large.empty() && large.extent_count() <= kRangesMax && !is_late();
  if (!difference.is_fine) {
    difference.blocks.AddAll(large);
    return difference;
  }
  H5M_ASSIGN_OR_RETURN(const v1::Version again,
                       comparison.Compare(kSmallBlockBytes, large, &difference.blocks));
  if (!IsSame(again, version)) {
    return absl::FailedPreconditionError("another version was made meanwhile");
  }
  return difference;
}

// Adds what `file` has beyond `remote_size`, and cuts off what it has not.
void FitToSize(const FileReader& file, uint64_t size, uint64_t remote_size, Changes* changes) {
  for (const Extent& data : file.DataExtents()) {
    const uint64_t from = std::max(data.offset, remote_size);
    if (from < data.end()) changes->extents.Add({from, data.end() - from});
  }
  changes->extents.TruncateTo(size);
  if (size < remote_size) changes->truncate = size;
}

}  // namespace

absl::StatusOr<OutsideChange> FindOutsideChange(const std::string& name, int64_t cut,
                                                const FileReader& file, AskDigests ask,
                                                absl::FunctionRef<bool()> is_late) {
  H5M_ASSIGN_OR_RETURN(const FileStat stat, file.Stat());
  const auto size = static_cast<uint64_t>(stat.size_bytes);
  Comparison comparison(name, file, ask, is_late);
  H5M_ASSIGN_OR_RETURN(const Difference difference, CompareWith(comparison, cut, is_late));
  const auto remote_size = static_cast<uint64_t>(difference.version.size_bytes());
  OutsideChange result;
  result.changes.extents.AddAll(difference.blocks);
  FitToSize(file, size, remote_size, &result.changes);
  result.is_none = result.changes.empty() && size == remote_size;
  if (result.is_none || size != remote_size || !difference.is_fine) return result;
  const uint64_t user_block = UserBlockOf(file, size);
  const bool ends_within = user_block % kSmallBlockBytes != 0;
  if (ends_within && EndOf(result.changes) <= kSmallBlockBytes && !is_late()) {
    H5M_RETURN_IF_ERROR(CompareUserBlock(comparison, difference.version, size, &result.changes));
  }
  result.is_user_block = EndOf(result.changes) <= user_block;
  return result;
}

OutsideChange WholeFile(const FileReader& file) {
  OutsideChange result;
  result.changes.truncate = 0;  // What is a hole here is one there, too.
  for (const Extent& extent : file.DataExtents()) result.changes.extents.Add(extent);
  return result;
}

}  // namespace h5mirror::vfd
