#include "onion_store/stage/stage_log.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kMagic = 0x534d3548;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kEntryBytes = 24;
// So that a small cut, as a rule, makes no file larger.
constexpr uint64_t kGrowBytes = 64 << 10;
enum Kind : uint32_t { kWrite = 1, kTruncate = 2, kCut = 3, kRevert = 4 };

// Checksums of consecutive ranges of a byte stream that lies in pieces.
class PieceReader {
 public:
  explicit PieceReader(absl::Span<const std::string_view> pieces) : pieces_(pieces) {}
  uint32_t Crc(uint64_t length) {
    uint32_t crc = 0;
    while (length > 0) {
      std::string_view rest = pieces_[piece_].substr(skip_);
      if (rest.empty()) {
        ++piece_, skip_ = 0;
        continue;
      }
      std::string_view part = rest.substr(0, length);
      crc = Crc32cExtend(crc, part);
      skip_ += part.size();
      length -= part.size();
    }
    return crc;
  }

 private:
  absl::Span<const std::string_view> pieces_;
  size_t piece_ = 0, skip_ = 0;
};

// Checks and visits the records of one segment, up to `end`.
class SegmentReplay {
 public:
  // All must outlive it.
  SegmentReplay(const StageSegment& segment, const FileId& file_id, uint64_t end,
                const StageVisitor& visitor)
      : segment_(segment), file_id_(file_id), end_(end), visitor_(visitor) {}

  absl::Status Run() {
    for (; at_ < end_; at_ = next()) {
      H5M_RETURN_IF_ERROR(ReadHeader());
      H5M_RETURN_IF_ERROR(ReadTable());
      H5M_RETURN_IF_ERROR(VisitEntries());
      H5M_RETURN_IF_ERROR(VisitRecord());
    }
    return absl::OkStatus();
  }

 private:
  struct Header {
    uint32_t kind, entries;
    CutNumber cut;
    uint64_t size_bytes, data_bytes;
  };
  struct Entry {
    Extent extent;
    uint32_t crc;  // of its bytes
  };

  absl::Status Damaged(const char* what) const {
    return absl::DataLossError(absl::StrFormat("%s, record at %d: %s", segment_.name, at_, what));
  }

  // Where the record's data begins, and where it ends.
  uint64_t data_at() const { return at_ + table_.size(); }
  uint64_t next() const { return data_at() + header_.data_bytes; }

  absl::Status ReadHeader() {
    table_.resize(kHeaderBytes);
    H5M_RETURN_IF_ERROR(ReadOrZeros(*segment_.file, at_, absl::MakeSpan(table_)));
    if (GetInt<uint32_t>(&table_[0]) != kMagic) return Damaged("no record");
    header_ = {GetInt<uint32_t>(&table_[8]), GetInt<uint32_t>(&table_[12]),
               GetInt<int64_t>(&table_[40]), GetInt<uint64_t>(&table_[48]),
               GetInt<uint64_t>(&table_[56])};
    return absl::OkStatus();
  }

  // The header again, and the entries behind it: together they have a checksum.
  absl::Status ReadTable() {
    const uint64_t table_bytes = kHeaderBytes + uint64_t{header_.entries} * kEntryBytes;
    if (header_.data_bytes > end_ || at_ + table_bytes + header_.data_bytes > end_) {
      return Damaged("its length leads out of the stage");
    }
    table_.resize(table_bytes);
    H5M_RETURN_IF_ERROR(ReadOrZeros(*segment_.file, at_, absl::MakeSpan(table_)));
    if (Crc32c(std::string_view(table_).substr(8)) != GetInt<uint32_t>(&table_[4])) {
      return Damaged("its checksum does not match");
    }
    if (std::memcmp(&table_[16], file_id_.data(), file_id_.size()) != 0) {
      return Damaged("it belongs to another file");
    }
    if (header_.kind < kWrite || header_.kind > kRevert) return Damaged("it is of an unknown kind");
    if (header_.size_bytes > INT64_MAX) return Damaged("its size is that of no file");
    return absl::OkStatus();
  }

  Entry EntryAt(uint32_t i) const {
    const char* entry = &table_[kHeaderBytes + i * kEntryBytes];
    return {{GetInt<uint64_t>(entry), GetInt<uint64_t>(entry + 8)}, GetInt<uint32_t>(entry + 16)};
  }

  absl::Status VisitEntries() {
    uint64_t bytes_at = data_at();  // of the next write
    direct_.clear();
    for (uint32_t i = 0; i < header_.entries; ++i) {
      const Entry entry = EntryAt(i);
      const Extent& extent = entry.extent;
      if (extent.offset > INT64_MAX || extent.length > INT64_MAX - extent.offset) {
        return Damaged("an extent leads out of the file");
      }
      if (header_.kind == kRevert) {
        H5M_RETURN_IF_ERROR(VisitRevert(entry, data_at() + i * sizeof(StageLocation)));
      } else if (header_.kind == kWrite) {
        H5M_RETURN_IF_ERROR(VisitWrite(entry, bytes_at));
        bytes_at += extent.length;
      } else {
        direct_.push_back(extent);
      }
    }
    return absl::OkStatus();
  }

  // The bytes of `write` are at `at`.
  absl::Status VisitWrite(const Entry& write, uint64_t at) {
    const uint64_t length = write.extent.length;
    if (length > next() - at) return Damaged("its table and length disagree");
    uint32_t crc = 0;
    for (uint64_t done = 0; done < length; done += data_.size()) {
      data_.resize(std::min<uint64_t>(length - done, 1 << 20));
      H5M_RETURN_IF_ERROR(ReadOrZeros(*segment_.file, at + done, absl::MakeSpan(data_)));
      crc = Crc32cExtend(crc, data_);
    }
    if (crc != write.crc) return Damaged("the checksum of its data");
    return visitor_.on_write(write.extent, MakeLocation(segment_.number, at));
  }

  // The 8 bytes that name the place of `revert` are at `at`.
  absl::Status VisitRevert(const Entry& revert, uint64_t at) {
    std::string place(sizeof(StageLocation), '\0');
    if (at + place.size() <= next() && revert.extent.length <= kPageRunBytesMax) {
      H5M_RETURN_IF_ERROR(ReadOrZeros(*segment_.file, at, absl::MakeSpan(place)));
      const auto location = GetInt<StageLocation>(place.data());
      if (IsInPages(location)) {
        return visitor_.on_revert({revert.extent, location, revert.crc, header_.cut});
      }
    }
    return absl::DataLossError(
        absl::StrFormat("%s, at %d: names no page that comes back", segment_.name, at));
  }

  // What the record says besides its entries.
  absl::Status VisitRecord() {
    if (header_.kind == kTruncate) return visitor_.on_truncate(header_.size_bytes);
    if (header_.kind != kCut) return absl::OkStatus();
    return visitor_.on_cut(header_.cut, header_.size_bytes, direct_, {segment_.number, next()});
  }

  const StageSegment& segment_;
  const FileId& file_id_;
  const uint64_t end_;
  const StageVisitor& visitor_;
  // The record that it is at. The buffers serve one record after the other.
  uint64_t at_ = 0;
  Header header_{};
  std::string table_;           // the header and the entries
  std::string data_;            // a part of a write's bytes
  std::vector<Extent> direct_;  // of a cut
};

}  // namespace

absl::Status ReadStaged(const StageSegments& segments, StageLocation at, absl::Span<char> out) {
  for (const auto& segment : segments) {
    if (segment->number != SegmentOf(at)) continue;
    H5M_ASSIGN_OR_RETURN(size_t got, segment->file->ReadAt(OffsetOf(at), out));
    if (got == out.size()) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const uint64_t size, segment->file->Size());
    return absl::DataLossError(
        absl::StrFormat("%s has %d bytes, and %d are to be read at %d: something else cut it off",
                        segment->name, size, out.size(), OffsetOf(at)));
  }
  return absl::InternalError(
      absl::StrFormat("stage segment %d is not among those held%s", SegmentOf(at),
                      segments.empty() ? "" : ", the first of which is " + segments[0]->name));
}

std::string StageLog::SegmentName(uint64_t number) const {
  return directory_ + absl::StrFormat("/stage-%06d", number);
}

absl::Status StageLog::Open(uint64_t first, StageEnd end) {
  H5M_RETURN_IF_ERROR(OpenToCheck(first, end));
  if (segments_.empty() || segments_.back()->number != number_) return absl::OkStatus();
  file_end_bytes_ = end.bytes;
  H5M_ASSIGN_OR_RETURN(uint64_t size, segments_.back()->file->Size());
  return size > end.bytes ? segments_.back()->file->Truncate(end.bytes) : absl::OkStatus();
}

absl::Status StageLog::OpenToCheck(uint64_t first, StageEnd end) {
  if (first == 0 || first > end.segment || end.segment - first > 1'000'000) {
    return absl::DataLossError(
        StrCat(directory_, ": the index names no valid stage; put back a copy of it"));
  }
  for (uint64_t number = first; number <= end.segment; ++number) {
    auto file = tree_.Open(SegmentName(number), OpenKind::kWrite, 0);
    if (absl::IsNotFound(file.status())) {
      if (number == end.segment && end.bytes == 0) break;
      return absl::DataLossError(
          StrCat(SegmentName(number), " is missing: put back a copy of ", directory_));
    }
    H5M_RETURN_IF_ERROR(file.status());
    auto segment = std::make_shared<StageSegment>();
    segment->number = number;
    segment->name = SegmentName(number);
    segment->file = *std::move(file);
    segments_.push_back(std::move(segment));
  }
  number_ = end.segment;
  end_bytes_ = end.bytes;
  if (segments_.empty() || segments_.back()->number != number_) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(uint64_t size, segments_.back()->file->Size());
  if (size < end.bytes) {
    return absl::DataLossError(
        absl::StrFormat("%s has %d bytes, %d were durable: put back a copy of %s",
                        SegmentName(number_), size, end.bytes, directory_));
  }
  return absl::OkStatus();
}

absl::Status StageLog::Replay(const StageVisitor& visitor) {
  for (const auto& segment : segments_) {
    uint64_t end = end_bytes_;
    if (segment->number != number_) {
      H5M_ASSIGN_OR_RETURN(end, segment->file->Size());
    }
    H5M_RETURN_IF_ERROR(SegmentReplay(*segment, file_id_, end, visitor).Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<StageLocation> StageLog::AppendWrite(int64_t generation, CutNumber cut,
                                                    absl::Span<const Extent> extents,
                                                    absl::Span<const std::string_view> pieces) {
  StageLocation at = 0;
  PieceReader reader(pieces);
  std::vector<uint32_t> crcs;
  crcs.reserve(extents.size());
  for (const Extent& extent : extents) crcs.push_back(reader.Crc(extent.length));
  H5M_RETURN_IF_ERROR(Append(kWrite, generation, cut, 0, extents, crcs, pieces, &at));
  return at;
}

absl::Status StageLog::AppendReverts(int64_t generation, CutNumber cut,
                                     absl::Span<const Revert> reverts) {
  std::vector<Extent> extents;
  std::vector<uint32_t> crcs;
  std::string places;
  for (const Revert& revert : reverts) {
    extents.push_back(revert.extent);
    crcs.push_back(revert.crc);
    PutInt<StageLocation>(&places, revert.at);
  }
  std::string_view piece = places;
  return Append(kRevert, generation, cut, 0, extents, crcs, {&piece, 1}, nullptr);
}

absl::Status StageLog::AppendTruncate(int64_t generation, CutNumber cut, uint64_t size_bytes) {
  return Append(kTruncate, generation, cut, size_bytes, {}, {}, {}, nullptr);
}

absl::Status StageLog::AppendCut(int64_t generation, CutNumber cut, uint64_t size_bytes,
                                 absl::Span<const Extent> direct) {
  return Append(kCut, generation, cut, size_bytes, direct, {}, {}, nullptr);
}

absl::Status StageLog::Append(uint32_t kind, int64_t generation, CutNumber cut, uint64_t size_bytes,
                              absl::Span<const Extent> extents, absl::Span<const uint32_t> crcs,
                              absl::Span<const std::string_view> pieces, StageLocation* data_at) {
  uint64_t data_bytes = 0;
  for (std::string_view piece : pieces) data_bytes += piece.size();
  H5M_RETURN_IF_ERROR(MakeRoom(kHeaderBytes + extents.size() * kEntryBytes + data_bytes));
  H5M_RETURN_IF_ERROR(NeedSegment());
  std::string record;
  record.reserve(kHeaderBytes + extents.size() * kEntryBytes);
  PutInt<uint32_t>(&record, kMagic);
  PutInt<uint32_t>(&record, 0);
  PutInt<uint32_t>(&record, kind);
  PutInt<uint32_t>(&record, extents.size());
  record.append(reinterpret_cast<const char*>(file_id_.data()), file_id_.size());
  PutInt<int64_t>(&record, generation);
  PutInt<int64_t>(&record, cut);
  PutInt<uint64_t>(&record, size_bytes);
  PutInt<uint64_t>(&record, data_bytes);
  for (size_t i = 0; i < extents.size(); ++i) {
    PutInt<uint64_t>(&record, extents[i].offset);
    PutInt<uint64_t>(&record, extents[i].length);
    PutInt<uint32_t>(&record, crcs.empty() ? 0 : crcs[i]);
    PutInt<uint32_t>(&record, 0);
  }
  PutIntAt<uint32_t>(&record, 4, Crc32c(std::string_view(record).substr(8)));

  std::vector<std::string_view> all{record};
  all.insert(all.end(), pieces.begin(), pieces.end());
  StageSegment& segment = *segments_.back();
  // What a failed write left must not stay behind the last record of a segment.
  if (torn_) H5M_RETURN_IF_ERROR(CutOff());
  GrowAhead(record.size() + data_bytes);
  torn_ = true;
  absl::Status written = segment.file->WriteAt(end_bytes_, all);
  // Only now: a sync that runs beside the write takes the mark away and may miss the bytes.
  segment.dirty = true;
  H5M_RETURN_IF_ERROR(written);
  torn_ = false;
  if (data_at != nullptr) *data_at = MakeLocation(number_, end_bytes_ + record.size());
  end_bytes_ += record.size() + data_bytes;
  file_end_bytes_ = std::max(file_end_bytes_, end_bytes_);
  return absl::OkStatus();
}

// The next record has `bytes` bytes. Where many or large ones follow, the file grows by their
// writes: in advance it would take a call to the MDS for each 64 KiB of a large cut.
void StageLog::GrowAhead(uint64_t bytes) {
  const uint64_t end = end_bytes_ + bytes;
  if (end <= file_end_bytes_ || end >= kKeptBytes || bytes > kGrowBytes) return;
  StageSegment& segment = *segments_.back();
  const uint64_t wanted = (end / kGrowBytes + 1) * kGrowBytes;
  if (!segment.file->GrowAhead(wanted)) return;
  file_end_bytes_ = wanted;
  segment.dirty = true;
}

absl::Status StageLog::CutOff() {
  StageSegment& segment = *segments_.back();
  H5M_RETURN_IF_ERROR(segment.file->Truncate(end_bytes_));
  segment.dirty = true;
  file_end_bytes_ = end_bytes_;
  torn_ = false;
  return absl::OkStatus();
}

absl::Status StageLog::MakeRoom(uint64_t bytes) {
  if (bytes >= uint64_t{1} << (kStageOffsetBits - 1)) {
    return absl::ResourceExhaustedError(
        StrCat(SegmentName(number_), ": a record of ", bytes, " bytes is too large"));
  }
  if (end_bytes_ == 0 || bytes <= segment_bytes_ - std::min(segment_bytes_, end_bytes_)) {
    return absl::OkStatus();
  }
  return Rotate();
}

absl::Status StageLog::NeedSegment() {
  if (!segments_.empty() && segments_.back()->number == number_) return absl::OkStatus();
  auto segment = std::make_shared<StageSegment>();
  segment->number = number_;
  segment->name = SegmentName(number_);
  H5M_ASSIGN_OR_RETURN(segment->file,
                       tree_.Open(SegmentName(number_), OpenKind::kCreateFresh, 0600));
  segments_.push_back(std::move(segment));
  file_end_bytes_ = 0;
  names_changed_ = true;
  return absl::OkStatus();
}

uint64_t StageLog::byte_count() const {
  uint64_t total = end_bytes_;
  for (const auto& segment : segments_) {
    if (segment->number == number_) continue;
    absl::StatusOr<uint64_t> size = segment->file->Size();
    total += size.ok() ? *size : 0;
  }
  return total;
}

absl::Status StageLog::RewindTo(StageEnd end) {
  if (end.segment == number_ && end.bytes == end_bytes_ && !torn_) return absl::OkStatus();
  number_ = end.segment;
  end_bytes_ = end.bytes;
  while (!segments_.empty() && segments_.back()->number > number_) {
    const std::string name = SegmentName(segments_.back()->number);
    segments_.pop_back();
    H5M_RETURN_IF_ERROR(tree_.Remove(name));
    torn_ = false;
  }
  if (segments_.empty() || segments_.back()->number != number_) return absl::OkStatus();
  return CutOff();
}

absl::Status StageLog::Rotate() {
  if (end_bytes_ == 0) return absl::OkStatus();
  // Nobody cuts it off later, as the log does not come back to this segment.
  if (torn_ || file_end_bytes_ > end_bytes_) H5M_RETURN_IF_ERROR(CutOff());
  GoOn();
  return absl::OkStatus();
}

void StageLog::GoOn() {
  ++number_;
  end_bytes_ = 0;
}

absl::Status StageLog::RemoveBefore(uint64_t first) {
  while (!segments_.empty() && segments_.front()->number < first) {
    uint64_t number = segments_.front()->number;
    segments_.erase(segments_.begin());
    H5M_RETURN_IF_ERROR(tree_.Remove(SegmentName(number)));
  }
  return absl::OkStatus();
}

absl::Status StageLog::Reset(uint64_t keep_bytes) {
  if (segments_.empty()) return absl::OkStatus();
  const bool is_read = segments_.back()->number == number_ && segments_.back()->reader_count > 0;
  if (end_bytes_ > 0 && is_read) GoOn();
  H5M_RETURN_IF_ERROR(RemoveBefore(number_));
  if (segments_.empty() || is_read) return absl::OkStatus();
  end_bytes_ = 0;
  if (file_end_bytes_ <= keep_bytes) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(segments_.back()->file->Truncate(0));
  file_end_bytes_ = 0;
  torn_ = false;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
