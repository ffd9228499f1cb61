#include "client_vfd/embedded/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/superblock_image.h"

namespace h5mirror::vfd {
namespace {

absl::StatusOr<store::VersionInfo> Find(store::File& file, const rpc::VersionSpec& spec) {
  if (spec.number != 0) return file.GetVersion(spec.number);
  if (!spec.tag.empty()) return file.FindVersionTagged(spec.tag);
  if (spec.at.has_value()) return file.FindVersionAt(spec.at->time);
  return file.FindVersionBack(spec.back);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EmbeddedReader>> EmbeddedReader::Open(
    std::string path, Opener opener, const rpc::VersionSpec& version) {
  std::unique_ptr<EmbeddedReader> reader(new EmbeddedReader(std::move(path), std::move(opener)));
  H5M_ASSIGN_OR_RETURN(reader->file_, reader->opener_());
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo found, Find(*reader->file_, version));
  H5M_RETURN_IF_ERROR(reader->OpenVersion(found.version));
  H5M_RETURN_IF_ERROR(reader->FindSuperblock());
  return reader;
}

EmbeddedReader::~EmbeddedReader() {
  if (IsInherited()) LeaveToParent();
}

absl::Status EmbeddedReader::OpenVersion(store::VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(reader_, file_->OpenVersion(version));
  info_ = reader_->info();
  return absl::OkStatus();
}

void EmbeddedReader::LeaveToParent() {
  // Never destroyed: that would close the parent's index.
  static_cast<void>(new std::shared_ptr<store::File>(std::move(file_)));
  static_cast<void>(reader_.release());
}

absl::Status EmbeddedReader::FindSuperblock() {
  const uint64_t size = info().size_bytes;
  for (uint64_t offset = 0; offset < size; offset = offset == 0 ? 512 : 2 * offset) {
    std::string bytes(std::min<uint64_t>(kSuperblockImageBytes, size - offset), '\0');
    H5M_RETURN_IF_ERROR(reader_->Read(offset, absl::MakeSpan(bytes)));
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kNo) continue;
    patch_offset_ = offset;
    patch_ = ClosedSuperblock(bytes, offset, size).value_or("");
    break;
  }
  return absl::OkStatus();
}

absl::Status EmbeddedReader::Read(uint64_t offset, absl::Span<char> out) {
  if (IsInherited()) {
    if (reader_ != nullptr) LeaveToParent();
    forks_seen_ = ForksSeen();
  }
  absl::Status read = reader_ == nullptr ? absl::UnavailableError("") : reader_->Read(offset, out);
  if (absl::IsUnavailable(read)) {
    // The writer of this process, whose store it was, has closed, or this is a forked child.
    reader_.reset();
    H5M_ASSIGN_OR_RETURN(file_, opener_());
    const store::VersionInfo pinned = info_;
    H5M_RETURN_IF_ERROR(OpenVersion(pinned.version));
    if (info_.cut != pinned.cut) {
      reader_.reset();
      info_ = pinned;
      return absl::OutOfRangeError(StrCat(path_, ": version ", pinned.version,
                                          " is not the one that was opened; open it again"));
    }
    read = reader_->Read(offset, out);
  }
  H5M_RETURN_IF_ERROR(read);
  const uint64_t from = std::max(offset, patch_offset_);
  const uint64_t to = std::min(offset + out.size(), patch_offset_ + patch_.size());
  if (from < to) {
    std::memcpy(out.data() + (from - offset), patch_.data() + (from - patch_offset_), to - from);
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::vfd
