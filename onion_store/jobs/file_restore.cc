#include "onion_store/jobs/file_restore.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/segment_object.h"
#include "onion_store/pages/sums_file.h"
#include "onion_store/shared/file_owner.h"
#include "onion_store/shared/object_cache.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPieceBytes = 8 << 20;
constexpr uint32_t kUnknownMode = 0644;  // as for a head whose writer's file has no known mode
constexpr uint32_t kWritable = 0600;     // the server writes each head

absl::Status RemoveIfThere(EnvTree& tree, const std::string& name) {
  const absl::Status removed = tree.Remove(name);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

// The error for a whole index that lacks something that the list names: the two do not belong
// together.
absl::Status OfCopy(const FileCopy& copy, const absl::Status& status) {
  const bool is_its_fault = absl::IsNotFound(status) || absl::IsAborted(status) ||
                            absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
  if (!is_its_fault) return status;
  return absl::DataLossError(
      StrCat(copy.prefix, ": its index does not fit the copy: ", ToStd(status.message())));
}

absl::Status Lacks(const std::string& object, const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::DataLossError(StrCat(object, ": there is no such object"));
}

// Writes the sums of the pages that `written` touches; all other pages are zeros.
absl::Status WriteSums(EnvFile& head, const ExtentSet& written, uint64_t page_bytes,
                       SumsFile& sums) {
  uint64_t done = 0;  // up to there
  for (auto next = written.NextAfter(0); next; next = written.NextAfter(done)) {
    const uint64_t begin = std::max(done, RoundDown(next->offset, page_bytes));
    done = RoundUp(std::min(next->end(), begin + kPieceBytes), page_bytes);
    std::string bytes(done - begin, '\0');
    H5M_RETURN_IF_ERROR(ReadOrZeros(head, begin, absl::MakeSpan(bytes)));
    H5M_RETURN_IF_ERROR(sums.Write(begin / page_bytes, sums.SumsOf(bytes)));
  }
  return absl::OkStatus();
}

// The pages that `extents` touch, up to the end of the head.
ExtentSet WholePages(const ExtentSet& extents, uint64_t page_bytes, uint64_t size_bytes) {
  ExtentSet pages;
  for (const Extent& extent : extents.ToVector()) {
    const uint64_t begin = RoundDown(extent.offset, page_bytes);
    pages.Add({begin, RoundUp(extent.end(), page_bytes) - begin});
  }
  pages.TruncateTo(size_bytes);
  return pages;
}

// A page of zeros could be a hole, or be made one by a tool, and readers skip holes.
absl::Status FillLost(EnvFile& head, const ExtentSet& lost) {
  constexpr std::string_view kFill = "h5mirror: lost\n ";
  for (const Extent& extent : lost.ToVector()) {
    std::string bytes;
    for (uint64_t at = extent.offset; at < extent.end(); at += bytes.size()) {
      bytes.clear();
      while (bytes.size() < std::min(kPieceBytes, extent.end() - at)) bytes += kFill;
      bytes.resize(std::min(kPieceBytes, extent.end() - at));
      H5M_RETURN_IF_ERROR(WriteAt(head, at, bytes));
    }
  }
  return absl::OkStatus();
}

// Sums that the bytes of `lost` do not match, so that no read takes them for the file's.
absl::Status SpoilSums(EnvFile& head, const ExtentSet& lost, uint64_t page_bytes, SumsFile& sums) {
  for (const Extent& extent : lost.ToVector()) {
    for (uint64_t at = extent.offset; at < extent.end(); at += page_bytes) {
      std::string page(page_bytes, '\0');
      H5M_RETURN_IF_ERROR(ReadOrZeros(head, at, absl::MakeSpan(page)));
      const uint32_t wrong = sums.SumOf(page) ^ 1;
      H5M_RETURN_IF_ERROR(sums.Write(at / page_bytes, {&wrong, 1}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FileRestore::Came(uint64_t bytes) const {
  return options_.on_bytes == nullptr ? absl::OkStatus() : options_.on_bytes(bytes);
}

absl::Status FileRestore::Run(const FileCopy& copy, const std::string& name) {
  const std::string history = StrCat(name, ".h5m");
  std::vector<ArchivedSegment> segments;
  H5M_RETURN_IF_ERROR(GetIndex(copy, &segments));
  H5M_RETURN_IF_ERROR(MakeDirectories(name));
  const uint32_t wanted = copy.mode_bits == 0 ? kUnknownMode : copy.mode_bits;
  const uint32_t mode_bits = (wanted & ~options_.umask_bits) | kWritable;
  for (const CopyHead& head : copy.heads) {
    const bool is_newest = &head == &copy.newest();
    const std::string head_name = is_newest ? name : StrCat(history, "/head-", head.generation);
    H5M_RETURN_IF_ERROR(GetHead(copy, head, head_name, is_newest ? mode_bits : kWritable,
                                StrCat(history, "/sums-", head.generation)));
  }
  for (const ArchivedSegment& segment : segments) {
    H5M_RETURN_IF_ERROR(GetSegment(
        copy, segment, StrCat(history, absl::StrFormat("/pages-%06d", segment.segment))));
  }
  H5M_RETURN_IF_ERROR(NameOwner(tree_, history, copy.owner));
  return Publish(history);
}

absl::Status FileRestore::MakeDirectories(const std::string& name) {
  const uint32_t mode_bits = 0777 & ~options_.umask_bits;
  for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    const absl::Status made = tree_.MakeDirectory(name.substr(0, slash), mode_bits);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  const absl::Status made = tree_.MakeDirectory(StrCat(name, ".h5m"), 0700);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  // The names of all directories, from the root on.
  H5M_RETURN_IF_ERROR(tree_.SyncDirectory(""));
  for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    H5M_RETURN_IF_ERROR(tree_.SyncDirectory(name.substr(0, slash)));
  }
  return absl::OkStatus();
}

absl::Status FileRestore::GetIndex(const FileCopy& copy, std::vector<ArchivedSegment>* segments) {
  const std::string name = StrCat(aside_, "/index");
  for (const char* suffix : {"", "-wal", "-journal"}) {
    H5M_RETURN_IF_ERROR(RemoveIfThere(tree_, StrCat(name, suffix)));
  }
  {
    H5M_ASSIGN_OR_RETURN(const auto file, tree_.Open(name, OpenKind::kCreateFresh, 0600));
    ExtentSet written, lost;
    H5M_RETURN_IF_ERROR(
        GetLayer(copy.file_id, copy.index, copy.index_bytes, *file, &written, &lost));
    H5M_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    if (size != copy.index_bytes) {
      return absl::DataLossError(StrCat(copy.prefix, ": its index has ", size,
                                        " bytes, and should have ", copy.index_bytes));
    }
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  return OfCopy(copy, PrepareIndex(copy, segments));
}

absl::Status FileRestore::PrepareIndex(const FileCopy& copy,
                                       std::vector<ArchivedSegment>* segments) {
  H5M_ASSIGN_OR_RETURN(const auto index, VersionIndex::Open(vfs_, tree_, aside_));
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> faults, index->CheckWhole());
  if (!faults.empty()) {
    return absl::DataLossError(StrCat(copy.prefix, ": its index is damaged: ", faults.front()));
  }
  H5M_ASSIGN_OR_RETURN(const FileRow row, index->ReadFileRow());
  H5M_ASSIGN_OR_RETURN(const VersionRow newest, index->GetVersion(copy.newest().version));
  const bool is_same = row.file_id == copy.file_id && row.page_size_bytes == copy.page_size_bytes &&
                       newest.info.cut == copy.newest().cut &&
                       newest.info.generation == copy.newest().generation &&
                       newest.info.size_bytes == copy.newest().size_bytes;
  if (!is_same) {
    return absl::DataLossError(StrCat(copy.prefix, ": its index is of another copy"));
  }
  if (!options_.keep_archived) {
    H5M_ASSIGN_OR_RETURN(*segments, index->ListArchived());
    std::erase_if(*segments,
                  [](const auto& each) { return each.state != ArchiveState::kArchived; });
  }
  H5M_RETURN_IF_ERROR(index->GoBackTo(
      {copy.newest().version, options_.keep_archived, options_.keep_archived ? copy.prefix : ""}));
  return index->Checkpoint();
}

absl::Status FileRestore::GetLayer(const FileId& file_id, const CopyLayer& layer,
                                   uint64_t size_bytes, EnvFile& file, ExtentSet* written,
                                   ExtentSet* lost) {
  for (size_t i = 0; i < layer.parts.size(); ++i) {
    H5M_ASSIGN_OR_RETURN(const Part part, GetPart(archive_, file_id, layer, i));
    std::string_view bytes = part.bytes;
    for (const Extent& extent : part.extents) {
      // The layer is of an earlier, longer state.
      const uint64_t end = std::min(extent.end(), size_bytes);
      if (extent.offset < end) {
        const Extent inside{extent.offset, end - extent.offset};
        H5M_RETURN_IF_ERROR(WriteAt(file, inside.offset, bytes.substr(0, inside.length)));
        written->Add(inside);
        lost->Remove(inside);
      }
      bytes.remove_prefix(extent.length);
    }
    H5M_RETURN_IF_ERROR(Came(layer.parts[i].length));
  }
  for (const Extent& extent : layer.lost) lost->Add(extent);
  lost->TruncateTo(size_bytes);
  return absl::OkStatus();
}

absl::Status FileRestore::GetHead(const FileCopy& copy, const CopyHead& head,
                                  const std::string& name, uint32_t mode_bits,
                                  const std::string& sums_name) {
  H5M_ASSIGN_OR_RETURN(const auto file, tree_.Open(name, OpenKind::kCreateFresh, kWritable));
  // The process's umask must have no effect.
  H5M_RETURN_IF_ERROR(file->SetMode(mode_bits, -1));
  ExtentSet written, lost;
  for (const CopyLayer& layer : head.layers) {
    H5M_RETURN_IF_ERROR(GetLayer(copy.file_id, layer, head.size_bytes, *file, &written, &lost));
  }
  H5M_RETURN_IF_ERROR(file->Truncate(head.size_bytes));
  const ExtentSet lost_pages = WholePages(lost, copy.page_size_bytes, head.size_bytes);
  lost_bytes_ += lost_pages.byte_count();
  H5M_RETURN_IF_ERROR(FillLost(*file, lost_pages));
  H5M_RETURN_IF_ERROR(file->Sync());
  H5M_ASSIGN_OR_RETURN(auto sums_file, tree_.Open(sums_name, OpenKind::kCreateFresh, 0600));
  SumsFile sums(std::move(sums_file), copy.page_size_bytes);
  H5M_RETURN_IF_ERROR(WriteSums(*file, written, copy.page_size_bytes, sums));
  H5M_RETURN_IF_ERROR(SpoilSums(*file, lost_pages, copy.page_size_bytes, sums));
  return sums.Sync();
}

absl::Status FileRestore::GetSegment(const FileCopy& copy, const ArchivedSegment& segment,
                                     const std::string& name) {
  const std::string& object = segment.object;
  H5M_ASSIGN_OR_RETURN(const auto file, tree_.Open(name, OpenKind::kCreateFresh, 0600));
  const auto get = [&](uint64_t offset, absl::Span<char> out) {
    return Lacks(object, archive_.Get(object, offset, out, ObjectCache::kGetTimeout));
  };
  std::string header(kSegmentObjectHeaderBytes, '\0');
  H5M_RETURN_IF_ERROR(get(0, absl::MakeSpan(header)));
  const absl::Status is_it =
      CheckSegmentObjectHeader(header, copy.file_id, copy.page_size_bytes, segment);
  if (!is_it.ok()) return absl::DataLossError(StrCat(object, ": ", ToStd(is_it.message())));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < segment.length;) {
    std::string bytes(std::min(kPieceBytes, segment.length - at), '\0');
    H5M_RETURN_IF_ERROR(get(segment.offset + at, absl::MakeSpan(bytes)));
    crc = Crc32cExtend(crc, bytes);
    H5M_RETURN_IF_ERROR(WriteAt(*file, at, bytes));
    at += bytes.size();
    H5M_RETURN_IF_ERROR(Came(bytes.size()));
  }
  if (crc != segment.crc32c) {
    return absl::DataLossError(StrCat(object, ": its bytes differ from those put"));
  }
  return file->Sync();
}

absl::Status FileRestore::Publish(const std::string& history) {
  const std::string index = StrCat(history, "/index"), log = StrCat(index, "-wal");
  // SQLite would take an old log for the index's.
  H5M_RETURN_IF_ERROR(RemoveIfThere(tree_, log));
  H5M_RETURN_IF_ERROR(tree_.Open(log, OpenKind::kCreateFresh, 0600).status());
  {
    H5M_ASSIGN_OR_RETURN(const auto file,
                         tree_.Open(StrCat(aside_, "/index"), OpenKind::kWrite, 0));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  // The files that the index needs get their names before the index does.
  H5M_RETURN_IF_ERROR(tree_.SyncDirectory(history));
  const size_t slash = history.rfind('/');
  H5M_RETURN_IF_ERROR(tree_.SyncDirectory(slash == history.npos ? "" : history.substr(0, slash)));
  H5M_RETURN_IF_ERROR(tree_.Rename(StrCat(aside_, "/index"), index));
  return tree_.SyncDirectory(history);
}

}  // namespace h5mirror::store
