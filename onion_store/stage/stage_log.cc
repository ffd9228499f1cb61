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

struct Header {
  uint32_t kind, entries;
  CutNumber cut;
  uint64_t size_bytes, data_bytes;
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
  return absl::InternalError(absl::StrFormat("no stage segment %d", SegmentOf(at)));
}

std::string StageLog::SegmentName(uint64_t number) const {
  return directory_ + absl::StrFormat("/stage-%06d", number);
}

absl::Status StageLog::Open(uint64_t first, StageEnd end) {
  H5M_RETURN_IF_ERROR(OpenToCheck(first, end));
  if (segments_.empty() || segments_.back()->number != number_) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(uint64_t size, segments_.back()->file->Size());
  return size > end.bytes ? segments_.back()->file->Truncate(end.bytes) : absl::OkStatus();
}

absl::Status StageLog::OpenToCheck(uint64_t first, StageEnd end) {
  if (first == 0 || first > end.segment || end.segment - first > 1'000'000) {
    return absl::DataLossError(StrCat(directory_, ": the index names no valid stage"));
  }
  for (uint64_t number = first; number <= end.segment; ++number) {
    auto file = tree_.Open(SegmentName(number), OpenKind::kWrite, 0);
    if (absl::IsNotFound(file.status())) {
      if (number == end.segment && end.bytes == 0) break;
      return absl::DataLossError(StrCat(SegmentName(number), " is missing"));
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
        absl::StrFormat("%s has %d bytes, %d were durable", SegmentName(number_), size, end.bytes));
  }
  return absl::OkStatus();
}

absl::Status StageLog::Replay(const StageVisitor& visitor) {
  for (const auto& segment : segments_) {
    uint64_t end = end_bytes_;
    if (segment->number != number_) {
      H5M_ASSIGN_OR_RETURN(end, segment->file->Size());
    }
    H5M_RETURN_IF_ERROR(ReplaySegment(*segment, end, visitor));
  }
  return absl::OkStatus();
}

absl::Status StageLog::ReplaySegment(const StageSegment& segment, uint64_t end,
                                     const StageVisitor& visitor) {
  std::string table(kHeaderBytes, '\0'), data;
  for (uint64_t at = 0; at < end;) {
    auto damaged = [&](const char* what) {
      return absl::DataLossError(
          absl::StrFormat("%s, record at %d: %s", SegmentName(segment.number), at, what));
    };
    table.resize(kHeaderBytes);
    H5M_RETURN_IF_ERROR(ReadOrZeros(*segment.file, at, absl::MakeSpan(table)));
    Header header{GetInt<uint32_t>(&table[8]), GetInt<uint32_t>(&table[12]),
                  GetInt<int64_t>(&table[40]), GetInt<uint64_t>(&table[48]),
                  GetInt<uint64_t>(&table[56])};
    if (GetInt<uint32_t>(&table[0]) != kMagic) return damaged("no record");
    uint64_t table_bytes = uint64_t{header.entries} * kEntryBytes;
    if (header.data_bytes > end || at + kHeaderBytes + table_bytes + header.data_bytes > end) {
      return damaged("its length leads out of the stage");
    }
    table.resize(kHeaderBytes + table_bytes);
    H5M_RETURN_IF_ERROR(ReadOrZeros(*segment.file, at, absl::MakeSpan(table)));
    if (Crc32c(std::string_view(table).substr(8)) != GetInt<uint32_t>(&table[4])) {
      return damaged("its checksum does not match");
    }
    if (std::memcmp(&table[16], file_id_.data(), file_id_.size()) != 0) {
      return damaged("it belongs to another file");
    }
    if (header.kind < kWrite || header.kind > kRevert) return damaged("it is of an unknown kind");
    if (header.size_bytes > INT64_MAX) return damaged("its size is that of no file");
    uint64_t data_at = at + table.size();
    uint64_t next = data_at + header.data_bytes;
    std::vector<Extent> extents;
    for (uint32_t i = 0; i < header.entries; ++i) {
      const char* entry = &table[kHeaderBytes + i * kEntryBytes];
      Extent extent{GetInt<uint64_t>(entry), GetInt<uint64_t>(entry + 8)};
      if (extent.offset > INT64_MAX || extent.length > INT64_MAX - extent.offset) {
        return damaged("an extent leads out of the file");
      }
      if (header.kind == kRevert) {
        H5M_RETURN_IF_ERROR(ReplayRevert(segment, data_at + i * sizeof(StageLocation), next,
                                         {extent, 0, GetInt<uint32_t>(entry + 16), header.cut},
                                         visitor));
        continue;
      }
      if (header.kind != kWrite) {
        extents.push_back(extent);
        continue;
      }
      if (extent.length > next - data_at) return damaged("its table and length disagree");
      uint32_t crc = 0;
      for (uint64_t done = 0; done < extent.length; done += data.size()) {
        data.resize(std::min<uint64_t>(extent.length - done, 1 << 20));
        H5M_RETURN_IF_ERROR(ReadOrZeros(*segment.file, data_at + done, absl::MakeSpan(data)));
        crc = Crc32cExtend(crc, data);
      }
      if (crc != GetInt<uint32_t>(entry + 16)) return damaged("the checksum of its data");
      H5M_RETURN_IF_ERROR(visitor.on_write(extent, MakeLocation(segment.number, data_at)));
      data_at += extent.length;
    }
    if (header.kind == kTruncate) H5M_RETURN_IF_ERROR(visitor.on_truncate(header.size_bytes));
    if (header.kind == kCut) {
      H5M_RETURN_IF_ERROR(
          visitor.on_cut(header.cut, header.size_bytes, extents, {segment.number, next}));
    }
    at = next;
  }
  return absl::OkStatus();
}

absl::Status StageLog::ReplayRevert(const StageSegment& segment, uint64_t at, uint64_t end,
                                    Revert revert, const StageVisitor& visitor) {
  std::string place(sizeof(StageLocation), '\0');
  if (at + place.size() <= end && revert.extent.length <= kPageRunBytesMax) {
    H5M_RETURN_IF_ERROR(ReadOrZeros(*segment.file, at, absl::MakeSpan(place)));
    revert.at = GetInt<StageLocation>(place.data());
    if (IsInPages(revert.at)) return visitor.on_revert(revert);
  }
  return absl::DataLossError(
      absl::StrFormat("%s, at %d: names no page that comes back", SegmentName(segment.number), at));
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
  uint64_t data_bytes = 0;
  for (std::string_view piece : pieces) data_bytes += piece.size();
  PutInt<uint64_t>(&record, data_bytes);
  if (end_bytes_ + data_bytes >= uint64_t{1} << (kStageOffsetBits - 1)) {
    return absl::ResourceExhaustedError(
        StrCat(SegmentName(number_), " is full: make a cut at least every 512 GiB"));
  }
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
  if (torn_) H5M_RETURN_IF_ERROR(segment.file->Truncate(end_bytes_));
  torn_ = true;
  absl::Status written = segment.file->WriteAt(end_bytes_, all);
  // Only now: a sync that runs beside the write takes the mark away and may miss the bytes.
  segment.dirty = true;
  H5M_RETURN_IF_ERROR(written);
  torn_ = false;
  if (data_at != nullptr) *data_at = MakeLocation(number_, end_bytes_ + record.size());
  end_bytes_ += record.size() + data_bytes;
  return absl::OkStatus();
}

absl::Status StageLog::NeedSegment() {
  if (!segments_.empty() && segments_.back()->number == number_) return absl::OkStatus();
  auto segment = std::make_shared<StageSegment>();
  segment->number = number_;
  segment->name = SegmentName(number_);
  H5M_ASSIGN_OR_RETURN(segment->file,
                       tree_.Open(SegmentName(number_), OpenKind::kCreateFresh, 0600));
  segments_.push_back(std::move(segment));
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
  if (end.segment != number_ || (end.bytes == end_bytes_ && !torn_)) return absl::OkStatus();
  end_bytes_ = end.bytes;
  if (segments_.empty() || segments_.back()->number != number_) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(segments_.back()->file->Truncate(end.bytes));
  segments_.back()->dirty = true;
  torn_ = false;
  return absl::OkStatus();
}

void StageLog::Rotate() {
  if (end_bytes_ == 0) return;
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

absl::Status StageLog::Reset() {
  if (segments_.empty()) return absl::OkStatus();
  if (end_bytes_ > 0 && segments_.back()->number == number_ && segments_.back()->reader_count > 0) {
    Rotate();
  }
  H5M_RETURN_IF_ERROR(RemoveBefore(number_));
  if (segments_.empty() || end_bytes_ == 0) return absl::OkStatus();
  end_bytes_ = 0;
  return segments_.back()->file->Truncate(0);
}

}  // namespace h5mirror::store
