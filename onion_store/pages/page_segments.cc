#include "onion_store/pages/page_segments.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/page_packing.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kMagic = 0x504d3548;
constexpr size_t kHeaderBytes = 64;
// Encodings.
constexpr uint32_t kPlain = 0;
constexpr uint32_t kZstd = 1;
constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kOneReadBytes = 16 << 10;
constexpr size_t kOpenFilesMax = 8;  // a reader of old versions goes through segments in order

}  // namespace

std::string PageSegments::SegmentName(uint64_t number) const {
  return directory_ + absl::StrFormat("/pages-%06d", number);
}

absl::StatusOr<std::shared_ptr<EnvFile>> PageSegments::Segment(uint64_t number, OpenKind kind) {
  absl::MutexLock lock(&mutex_);
  auto found = files_.find(number);
  if (found != files_.end()) return found->second;
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<EnvFile> file, tree_.Open(SegmentName(number), kind, 0600));
  if (files_.size() >= kOpenFilesMax) {
    // The segment for appends stays: it has the largest number.
    files_.erase(files_.begin());
  }
  files_[number] = file;
  return file;
}

absl::Status PageSegments::NeedRoom() {
  if (end_bytes_ < kPageSegmentBytesMax) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(Sync());
  Rotate();
  return absl::OkStatus();
}

void PageSegments::Rotate() {
  ++segment_;
  end_bytes_ = 0;
  checked_ = false;
}

uint64_t PageSegments::HeaderBytes(const PageRun& run) const {
  return kHeaderBytes + run.page_count() * sizeof(uint32_t);
}

uint64_t PageSegments::RecordBytes(const PageRun& run) const {
  return HeaderBytes(run) + (run.packed() ? run.packed_bytes : PagesBytes(run));
}

absl::Status PageSegments::Remove(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  files_.erase(number);
  absl::Status removed = tree_.Remove(SegmentName(number));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::StatusOr<PageRun> PageSegments::Append(int64_t generation, int level, uint64_t page,
                                             VersionNumber version, std::string_view bytes,
                                             absl::Span<const uint32_t> crcs) {
  H5M_RETURN_IF_ERROR(NeedRoom());
  const PageRun run{level, page, version, 0, 0};
  return AppendRecord(run, Header(run, generation, crcs), bytes);
}

absl::StatusOr<PageRun> PageSegments::AppendPacked(int64_t generation, int level, uint64_t page,
                                                   VersionNumber version, std::string_view packed,
                                                   absl::Span<const uint32_t> crcs) {
  H5M_RETURN_IF_ERROR(NeedRoom());
  const PageRun run{level, page, version, 0, 0, static_cast<uint32_t>(packed.size())};
  return AppendRecord(run, Header(run, generation, crcs), packed);
}

std::string PageSegments::Header(const PageRun& run, int64_t generation,
                                 absl::Span<const uint32_t> crcs) const {
  std::string header;
  PutInt<uint32_t>(&header, kMagic);
  PutInt<uint32_t>(&header, 0);
  PutInt<uint32_t>(&header, run.packed() ? kZstd : kPlain);
  PutInt<uint32_t>(&header, run.level);
  header.append(reinterpret_cast<const char*>(file_id_.data()), file_id_.size());
  PutInt<int64_t>(&header, generation);
  PutInt<int64_t>(&header, run.version);
  PutInt<uint64_t>(&header, run.page);
  PutInt<uint32_t>(&header, page_size_bytes_);
  PutInt<uint32_t>(&header, run.packed_bytes);
  for (uint32_t crc : crcs) PutInt<uint32_t>(&header, crc);
  PutIntAt<uint32_t>(&header, 4, Crc32c(std::string_view(header).substr(8)));
  return header;
}

absl::StatusOr<PageRun> PageSegments::AppendRecord(PageRun run, std::string_view header,
                                                   std::string_view bytes) {
  run.segment = segment_;
  run.offset = end_bytes_;
  buffer_.append(header);
  buffer_.append(bytes);
  end_bytes_ += header.size() + bytes.size();
  if (buffer_.size() >= kBufferBytes) H5M_RETURN_IF_ERROR(Write());
  return run;
}

absl::StatusOr<std::shared_ptr<EnvFile>> PageSegments::SegmentOfRun(const PageRun& run) {
  auto file = Segment(run.segment, OpenKind::kWrite);  // It may be the segment for appends.
  if (!absl::IsNotFound(file.status())) return file;
  if (archived_ != nullptr) {
    H5M_ASSIGN_OR_RETURN(auto archived, archived_->Open(run.segment, SegmentName(run.segment)));
    if (archived != nullptr) return archived;
  }
  return Damaged(run, "the segment is missing: put back a copy of it");
}

absl::Status PageSegments::TwiceIfArchived(const PageRun& run,
                                           absl::FunctionRef<absl::Status()> read) {
  const absl::Status once = read();
  if (!absl::IsDataLoss(once) || archived_ == nullptr) return once;
  const std::string place = archived_->Forget(run.segment);
  if (place.empty()) return once;
  const absl::Status twice = read();
  if (!absl::IsDataLoss(twice)) return twice;
  return absl::DataLossError(StrCat(ToStd(twice.message()), ", ", place));
}

absl::StatusOr<std::string> PageSegments::ReadRecord(const PageRun& run, int64_t generation) {
  if (run.packed_bytes >= PagesBytes(run)) return Damaged(run, "impossible length in the index");
  H5M_ASSIGN_OR_RETURN(auto file, SegmentOfRun(run));
  std::string record(RecordBytes(run), '\0');
  H5M_RETURN_IF_ERROR(ReadOrZeros(*file, run.offset, absl::MakeSpan(record)));
  H5M_RETURN_IF_ERROR(
      CheckHeader(run, generation, std::string_view(record).substr(0, HeaderBytes(run))));
  return record;
}

absl::Status PageSegments::Unpack(const PageRun& run, std::string_view record,
                                  absl::Span<char> all) const {
  absl::Status unpacked = UnpackPages(record.substr(HeaderBytes(run)), all);
  return absl::IsDataLoss(unpacked) ? Damaged(run, ToStd(unpacked.message())) : unpacked;
}

absl::Status PageSegments::CheckPages(const PageRun& run, std::string_view header, uint64_t skip,
                                      std::string_view bytes) const {
  for (uint64_t i = 0; i * page_size_bytes_ < bytes.size(); ++i) {
    const uint32_t want = GetInt<uint32_t>(&header[kHeaderBytes + (skip + i) * sizeof(uint32_t)]);
    if (Crc32c(bytes.substr(i * page_size_bytes_, page_size_bytes_)) == want) continue;
    return Damaged(run, StrCat("the checksum of page ", run.page + skip + i, " does not match"));
  }
  return absl::OkStatus();
}

absl::Status PageSegments::Check(const PageRun& run, int64_t generation) {
  return TwiceIfArchived(run, [&] { return CheckOnce(run, generation); });
}

absl::Status PageSegments::CheckOnce(const PageRun& run, int64_t generation) {
  H5M_ASSIGN_OR_RETURN(const std::string record, ReadRecord(run, generation));
  return CheckRecord(run, record);
}

absl::Status PageSegments::CheckRecord(const PageRun& run, std::string_view record) const {
  if (!run.packed()) return CheckPages(run, record, 0, record.substr(HeaderBytes(run)));
  std::string pages(PagesBytes(run), '\0');
  H5M_RETURN_IF_ERROR(Unpack(run, record, absl::MakeSpan(pages)));
  return CheckPages(run, record, 0, pages);
}

absl::StatusOr<PageRun> PageSegments::Copy(const PageRun& run, int64_t generation) {
  H5M_ASSIGN_OR_RETURN(const std::string record, ReadRecord(run, generation));
  H5M_RETURN_IF_ERROR(CheckRecord(run, record));
  H5M_RETURN_IF_ERROR(NeedRoom());
  return AppendRecord(run, record, "");
}

absl::Status PageSegments::Damaged(const PageRun& run, std::string_view what) const {
  return absl::DataLossError(
      absl::StrFormat("%s, record at %d: %s", SegmentName(run.segment), run.offset, what));
}

absl::Status PageSegments::CheckHeader(const PageRun& run, int64_t generation,
                                       std::string_view header) const {
  if (GetInt<uint32_t>(&header[0]) != kMagic ||
      GetInt<uint32_t>(&header[4]) != Crc32c(header.substr(8))) {
    return Damaged(run, "the checksum of its header does not match");
  }
  if (GetInt<uint32_t>(&header[12]) != static_cast<uint32_t>(run.level) ||
      std::memcmp(&header[16], file_id_.data(), file_id_.size()) != 0 ||
      GetInt<int64_t>(&header[32]) != generation || GetInt<uint64_t>(&header[48]) != run.page ||
      GetInt<uint32_t>(&header[56]) != page_size_bytes_) {
    return Damaged(run, "it is of other pages than the index says");
  }
  const uint32_t encoding = GetInt<uint32_t>(&header[8]);
  if (encoding != kPlain && encoding != kZstd) return Damaged(run, "unknown encoding");
  if (encoding != (run.packed() ? kZstd : kPlain) ||
      GetInt<uint32_t>(&header[60]) != run.packed_bytes) {
    return Damaged(run, "it is compressed in another way than the index says");
  }
  return absl::OkStatus();
}

absl::Status PageSegments::Write() {
  if (buffer_.empty()) return absl::OkStatus();
  const uint64_t offset = end_bytes_ - buffer_.size();
  std::string bytes;
  bytes.swap(buffer_);
  auto write = [&]() -> absl::Status {
    H5M_ASSIGN_OR_RETURN(auto file, Segment(segment_, OpenKind::kCreate));
    if (!checked_) {
      if (offset == 0) new_name_ = true;
      H5M_RETURN_IF_ERROR(file->Truncate(offset));
      checked_ = true;
    }
    H5M_RETURN_IF_ERROR(WriteAt(*file, offset, bytes));
    file->StartWriteback({offset, bytes.size()});
    return absl::OkStatus();
  };
  absl::Status written = write();
  if (!written.ok()) end_bytes_ = offset;  // The rows of these runs were not committed.
  bytes.clear();
  buffer_.swap(bytes);  // Keeps its memory until the next Sync().
  return written;
}

absl::Status PageSegments::Sync() {
  H5M_RETURN_IF_ERROR(Write());
  std::string().swap(buffer_);  // Freed, because there are many files.
  H5M_ASSIGN_OR_RETURN(auto file, Segment(segment_, OpenKind::kWrite));
  H5M_RETURN_IF_ERROR(file->Sync());
  if (new_name_) H5M_RETURN_IF_ERROR(tree_.SyncDirectory(directory_));
  new_name_ = false;
  return absl::OkStatus();
}

absl::Status PageSegments::Read(const PageRun& run, int64_t generation, uint64_t first,
                                absl::Span<char> out) {
  if (run.segment == PageRun::kZeros) {
    std::memset(out.data(), 0, out.size());
    return absl::OkStatus();
  }
  return TwiceIfArchived(run, [&] { return ReadOnce(run, generation, first, out); });
}

absl::Status PageSegments::ReadOnce(const PageRun& run, int64_t generation, uint64_t first,
                                    absl::Span<char> out) {
  const uint64_t skip = first - run.page;
  if (!run.packed()) {
    H5M_ASSIGN_OR_RETURN(const std::string header, ReadPlain(run, generation, skip, out));
    return CheckPages(run, header, skip, {out.data(), out.size()});
  }
  H5M_ASSIGN_OR_RETURN(const std::string record, ReadRecord(run, generation));
  if (out.size() == PagesBytes(run)) {
    H5M_RETURN_IF_ERROR(Unpack(run, record, out));
  } else {
    std::string pages(PagesBytes(run), '\0');
    H5M_RETURN_IF_ERROR(Unpack(run, record, absl::MakeSpan(pages)));
    std::memcpy(out.data(), &pages[skip * page_size_bytes_], out.size());
  }
  return CheckPages(run, record, skip, {out.data(), out.size()});
}

absl::StatusOr<std::string> PageSegments::ReadPlain(const PageRun& run, int64_t generation,
                                                    uint64_t skip, absl::Span<char> out) {
  const uint64_t header_bytes = HeaderBytes(run);
  // A short record is read in one piece: a call costs more than the bytes.
  if (RecordBytes(run) <= kOneReadBytes) {
    H5M_ASSIGN_OR_RETURN(std::string record, ReadRecord(run, generation));
    std::memcpy(out.data(), &record[header_bytes + skip * page_size_bytes_], out.size());
    return record;
  }
  H5M_ASSIGN_OR_RETURN(auto file, SegmentOfRun(run));
  std::string header(header_bytes, '\0');
  H5M_RETURN_IF_ERROR(ReadOrZeros(*file, run.offset, absl::MakeSpan(header)));
  H5M_RETURN_IF_ERROR(CheckHeader(run, generation, header));
  H5M_RETURN_IF_ERROR(ReadOrZeros(*file, run.offset + header_bytes + skip * page_size_bytes_, out));
  return header;
}

StageLocation PageSegments::LocationOf(const PageRun& run, uint64_t first) const {
  if (run.segment == PageRun::kZeros) return MakePagesLocation(0, 0);
  return MakePagesLocation(run.segment,
                           run.offset + HeaderBytes(run) + (first - run.page) * page_size_bytes_);
}

absl::Status PageSegments::ReadAt(StageLocation at, absl::Span<char> out) {
  if (PagesSegmentOf(at) == 0) {
    std::memset(out.data(), 0, out.size());
    return absl::OkStatus();
  }
  auto file = Segment(PagesSegmentOf(at), OpenKind::kWrite);
  if (absl::IsNotFound(file.status())) return absl::DataLossError(file.status().message());
  H5M_RETURN_IF_ERROR(file.status());
  H5M_ASSIGN_OR_RETURN(size_t got, (*file)->ReadAt(OffsetOf(at), out));
  if (got == out.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s ends before offset %d", SegmentName(PagesSegmentOf(at)), OffsetOf(at) + out.size()));
}

}  // namespace h5mirror::store
