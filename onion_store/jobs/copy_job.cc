#include "onion_store/jobs/copy_job.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/human.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/history_sizes.h"
#include "onion_store/shared/object_cache.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kListSuffix = "-list";
constexpr absl::Duration kPutTimeout = absl::Minutes(2);
constexpr absl::Duration kDeleteTimeout = absl::Seconds(30);
constexpr size_t kListAtOnce = 1000;
// A part in three forms: as read, as put, and as read back.
constexpr int64_t kBufferBytes = 3 * kPartObjectBytesMax;

// The number of the copy that put an object; 0: the object is not of a copy.
uint64_t NumberOfObject(std::string_view name) {
  const size_t data = name.rfind("-data-");
  const size_t end = name.ends_with(kListSuffix) ? name.size() - kListSuffix.size() : data;
  return NumberOfCopy(name.substr(0, end)).value_or(0);
}

// Whether a layer has the part `name`.
bool Names(const CopyLayer& layer, const std::string& name) {
  constexpr std::string_view kData = "-data-";
  if (!name.starts_with(StrCat(layer.prefix, kData))) return false;
  uint64_t number = 0;
  const std::string_view digits = std::string_view(name).substr(layer.prefix.size() + kData.size());
  return absl::SimpleAtoi(ToAbsl(digits), &number) && number >= layer.first &&
         number - layer.first < layer.parts.size();
}

// Whether an object names parts, of a whole copy or an unfinished one.
bool NamesParts(std::string_view name) {
  return name.ends_with(kListSuffix) || IsBegunCopyName(name);
}

bool HeadsName(absl::Span<const CopyHead> heads, const std::string& name) {
  for (const CopyHead& head : heads) {
    for (const CopyLayer& layer : head.layers) {
      if (Names(layer, name)) return true;
    }
  }
  return false;
}

// Whether an object is a part of a copy.
bool IsNamedBy(const FileCopy& copy, const std::string& name) {
  return Names(copy.index, name) || HeadsName(copy.heads, name);
}

}  // namespace

CopyJob::CopyJob(ArchiveSource& file, VersionIndex& index, ObjectStore& store)
    : file_(file),
      files_(file.files()),
      index_(index),
      store_(store),
      charge_(files_.budget(), kBufferBytes) {}

absl::StatusOr<bool> CopyJob::Plan(bool always) {
  version_ = file_.row().applied_version;
  if (version_ == 0) return false;
  H5M_ASSIGN_OR_RETURN(const auto row, index_.FindCopy());
  H5M_ASSIGN_OR_RETURN(const std::string rows, index_.Shows());
  H5M_ASSIGN_OR_RETURN(const FileInfo info, file_.Info());
  shows_ = StrCat("version ", version_, " of ", rows, ", owner ", info.owner, ", ", files_.name());
  if (!always && row && !row->prefix.empty() && row->shows == shows_) return false;
  row_ = row.value_or(ArchivedCopyRow());
  // Before any object is put: a purge of the file then looks for objects of copies.
  if (!row) H5M_RETURN_IF_ERROR(index_.PutCopy(row_));
  copy_.owner = info.owner;
  copy_.versions = info.version_count;
  phase_ = Phase::kBegin;
  return true;
}

absl::StatusOr<bool> CopyJob::Step() {
  H5M_RETURN_IF_ERROR(Run());
  return phase_ != Phase::kDone;
}

absl::Status CopyJob::Run() {
  switch (phase_) {
    case Phase::kBegin:
      return Begin();
    case Phase::kSweepBroken:
      return SweepBroken();
    case Phase::kHead:
      return BeginHead();
    case Phase::kHeadParts:
      return Parts(&copy_.heads.back().layers.back(), Phase::kHead);
    case Phase::kIndex:
      return CopyIndex();
    case Phase::kIndexParts:
      return Parts(&copy_.index, Phase::kList);
    case Phase::kList:
      return PutList();
    case Phase::kRow:
      return CommitRow();
    case Phase::kDoom:
      return Doom();
    case Phase::kSweepLists:
      return Sweep(Phase::kSweepParts);
    case Phase::kSweepParts:
      return Sweep(forgets_ ? Phase::kForgetRow : Phase::kDone);
    case Phase::kForgetRow:
      return ForgetRow();
    case Phase::kDone:
      break;
  }
  return absl::OkStatus();
}

absl::Status CopyJob::OfDisk(absl::Status status) {
  if (!status.ok() && !absl::IsResourceExhausted(status)) file_.Die(status);
  return status;
}

absl::Status CopyJob::Begin() {
  last_.reset();
  uint64_t number = static_cast<uint64_t>(std::max<int64_t>(0, absl::GetCurrentTimeNanos()));
  if (!row_.prefix.empty()) {
    H5M_ASSIGN_OR_RETURN(const uint64_t last, NumberOfCopy(row_.prefix));
    number = std::max(number, last + 1);
    auto list = GetCopyList(store_, row_.prefix);
    // A lost copy is made again from the beginning.
    const bool is_lost = absl::IsNotFound(list.status()) || absl::IsDataLoss(list.status());
    if (!list.ok() && !is_lost) return list.status();
    if (list.ok()) last_ = *std::move(list);
  }
  broken_parts_.clear();
  begun_names_.clear();
  begun_.reset();
  has_looked_ = false;
  noted_.clear();
  note_count_ = noted_parts_ = 0;
  lists_.clear();
  list_next_.clear();
  is_listed_ = false;
  listed_ = ListedCopies();
  copy_.heads.clear();
  heads_.clear();
  next_part_ = 0;
  damaged_ = 0;
  damaged_from_ = 0;
  damage_.clear();
  copy_.file_id = files_.file_id();
  copy_.prefix = NewCopyPrefix(files_.file_id(), number);
  copy_.name = files_.name();
  copy_.time = absl::Now();
  copy_.page_size_bytes = files_.page_size_bytes();
  copy_.mode_bits = file_.row().mode_bits & 0777;
  // Without the last list it is unknown which parts are needed.
  if (!row_.prefix.empty() && !last_) return PlanHeads();
  phase_ = Phase::kSweepBroken;
  return absl::OkStatus();
}

// Else a large file whose copies are broken off again and again would fill the archive.
absl::Status CopyJob::SweepBroken() {
  if (!is_listed_) return ListBroken();
  if (!has_looked_) return FindBegun();
  if (broken_parts_.empty()) {
    is_listed_ = false;
    list_next_.clear();
    return PlanHeads();
  }
  H5M_RETURN_IF_ERROR(store_.Delete(broken_parts_.front(), kDeleteTimeout));
  broken_parts_.pop_front();
  return absl::OkStatus();
}

absl::Status CopyJob::FindBegun() {
  // Numbers rise from copy to copy, and within one.
  std::string newest = begun_names_.empty() ? "" : *begun_names_.rbegin();
  if (!newest.empty()) {
    const auto object = GetObject(store_, newest, kCopyListBytesMax);
    if (!object.ok() && !absl::IsNotFound(object.status()) && !absl::IsDataLoss(object.status())) {
      return object.status();
    }
    auto begun = object.ok() ? DecodeBegunCopy(files_.file_id(), *object) : object.status();
    if (begun.ok() && listed_.LostPart(begun->heads).empty()) begun_ = *std::move(begun);
    H5M_ASSIGN_OR_RETURN(const bool is_of_use, IsOfUse(begun_));
    if (!is_of_use) begun_.reset();
  }
  if (begun_) {
    noted_ = newest;
    std::erase_if(broken_parts_,
                  [&](const std::string& name) { return HeadsName(begun_->heads, name); });
  }
  // First the objects that name parts, then the parts. Calls of this job may still be under way
  // while another job, maybe on another server, begins: it must not rely on parts that are being
  // deleted.
  for (const std::string& name : begun_names_) {
    if (name != noted_) broken_parts_.push_front(name);
  }
  has_looked_ = true;
  return absl::OkStatus();
}

// Else its parts would stay until this copy is whole.
absl::StatusOr<bool> CopyJob::IsOfUse(const std::optional<BegunCopy>& begun) {
  if (!begun) return false;
  for (const CopyHead& head : begun->heads) {
    H5M_ASSIGN_OR_RETURN(const bool is_there, IsThere(head.version, head.cut, head.generation));
    if (is_there) return true;
  }
  return false;
}

absl::Status CopyJob::ListBroken() {
  H5M_ASSIGN_OR_RETURN(const ObjectPage page, store_.List(CopyPrefix(files_.file_id()), list_next_,
                                                          kListAtOnce, ObjectCache::kGetTimeout));
  for (const ObjectInfo& object : page.objects) {
    listed_.Note(files_.file_id(), object);
    newest_listed_ = std::max(newest_listed_, NumberOfObject(object.name));
    if (object.name.ends_with(kListSuffix)) {
      lists_.insert(object.name.substr(0, object.name.size() - kListSuffix.size()));
    } else if (IsBegunCopyName(object.name)) {
      begun_names_.insert(object.name);
    } else if (!last_ || !IsNamedBy(*last_, object.name)) {
      broken_parts_.push_back(object.name);
    }
  }
  list_next_ = page.next;
  is_listed_ = page.next.empty();
  if (is_listed_ && newest_listed_ >= NumberOfCopy(copy_.prefix).value_or(0)) {
    // That copy is from a server whose clock was ahead. A restore takes the copy of the greatest
    // number.
    copy_.prefix = NewCopyPrefix(files_.file_id(), newest_listed_ + 1);
  }
  // No layer is built on an incomplete copy: all bytes are put again.
  if (is_listed_ && last_ && !listed_.LostPart(*last_).empty()) last_.reset();
  // A crash may have come between a list and the row that names it.
  if (is_listed_) {
    std::erase_if(broken_parts_, [&](const std::string& name) {
      return lists_.contains(name.substr(0, name.rfind("-data-")));
    });
  }
  return absl::OkStatus();
}

absl::Status CopyJob::LeaveFor(std::string_view why) {
  left_ = StrCat("no copy of the file was made, as ", why, ": the next pass tries again");
  phase_ = Phase::kDone;
  return absl::OkStatus();
}

CopyLayer CopyJob::NewLayer() const {
  CopyLayer layer;
  layer.prefix = copy_.prefix;
  layer.first = next_part_;
  return layer;
}

absl::Status CopyJob::Parts(CopyLayer* layer, Phase next) {
  if (object_.empty() && has_more_) {
    Part part;
    const size_t lost_before = layer->lost.size();
    const auto more = bytes_->Fill(&part, &layer->lost);
    if (!more.ok()) {  // Some bytes were already passed: begin again.
      bytes_.reset();
      phase_ = Phase::kBegin;
      return more.status();
    }
    has_more_ = *more;
    if (layer->lost.size() > lost_before) {
      const absl::Status met = MeetDamage(*layer);
      if (!met.ok() || phase_ == Phase::kHead) return met;
    }
    if (!part.extents.empty()) object_ = EncodePart(files_.file_id(), part);
  }
  if (!object_.empty()) {
    const std::string name = layer->PartName(layer->parts.size());
    H5M_RETURN_IF_ERROR(PutChecked(name, object_));
    layer->parts.push_back({object_.size(), Crc32c(object_)});
    object_.clear();
    ++next_part_;
    // The note only helps later jobs. This copy does not need it.
    const bool is_of_all = phase_ == Phase::kHeadParts && layer->from == 0;
    if (is_of_all && (has_more_ || HasFurtherHeads())) NoteBegun().IgnoreError();
  }
  if (has_more_) return absl::OkStatus();
  bytes_.reset();
  phase_ = next;
  return absl::OkStatus();
}

absl::Status CopyJob::PutChecked(const std::string& name, const std::string& bytes) {
  TextSource source(bytes);
  const absl::Status put = store_.Put(name, source, kPutTimeout);
  // An existing object is from an earlier try, whole or not.
  if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
  const auto found = GetObject(store_, name, bytes.size());
  if (found.ok() && *found == bytes) {
    put_bytes_ += bytes.size();
    return absl::OkStatus();
  }
  if (!found.ok() && !absl::IsDataLoss(found.status())) return found.status();
  // The deletion may arrive late, even if it had no answer. So the name is never put again, and the
  // next step begins again under another name.
  phase_ = Phase::kBegin;
  bytes_.reset();
  object_.clear();
  H5M_RETURN_IF_ERROR(store_.Delete(name, kDeleteTimeout));
  return absl::DataLossError(StrCat(files_.name(), ": ", store_.Describe(), " has other bytes in ",
                                    name, " than were put"));
}

absl::Status CopyJob::CopyIndex() {
  H5M_ASSIGN_OR_RETURN(const FileStat index, files_.tree().Stat(files_.HistoryName("index")));
  H5M_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytesOf(files_.tree()));
  if (static_cast<uint64_t>(index.size_bytes) > RoomToCopy(free_bytes)) {
    return LeaveFor(StrCat("its index has ", HumanBytes(index.size_bytes), ", and ",
                           HumanBytes(free_bytes),
                           " of disk are free, of which a quarter is left to writers"));
  }
  const Bytes16 random = RandomBytes16();
  int64_t number = 0;
  std::memcpy(&number, random.data(), sizeof(number));
  // If a crash leaves this name, a recovery removes it.
  const std::string name = files_.HistoryName(StrCat("run-", number & INT64_MAX));
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<EnvFile>> {
    H5M_RETURN_IF_ERROR(index_.CopyTo(name, version_));
    return files_.tree().Open(name, OpenKind::kRead, 0);
  };
  auto file = open();
  // It is read by its descriptor from here on.
  files_.tree().Remove(name).IgnoreError();
  if (absl::IsAborted(file.status())) {
    return LeaveFor(ToStd(file.status().message()));
  }
  H5M_RETURN_IF_ERROR(file.status());
  H5M_ASSIGN_OR_RETURN(copy_.index_bytes, (*file)->Size());
  copy_.index = NewLayer();
  bytes_ = LayerBytes::OfFile(*std::move(file), copy_.index_bytes);
  has_more_ = true;
  phase_ = Phase::kIndexParts;
  return absl::OkStatus();
}

absl::Status CopyJob::PutList() {
  const std::string list = EncodeCopyList(copy_);
  if (list.size() > kCopyListBytesMax) {
    return absl::ResourceExhaustedError(StrCat(files_.name(), ": the list of its copy has ",
                                               list.size(), " bytes, and may have ",
                                               kCopyListBytesMax));
  }
  // Read back as a restore will read it.
  H5M_ASSIGN_OR_RETURN(const FileCopy same, DecodeCopyList(copy_.prefix, list));
  H5M_RETURN_IF_ERROR(PutChecked(CopyListName(copy_.prefix), list));
  phase_ = Phase::kRow;
  return absl::OkStatus();
}

absl::Status CopyJob::CommitRow() {
  const uint64_t lost = LostBytes();
  WorkTurn turn(&file_.work_lock());
  H5M_RETURN_IF_ERROR(file_.dead());
  H5M_ASSIGN_OR_RETURN(const auto row, index_.FindCopy());
  if (!row || *row != row_) {
    return LeaveFor("the last copy, on which this one is built, was given up meanwhile");
  }
  const ArchivedCopyRow made{copy_.prefix, shows_};
  H5M_RETURN_IF_ERROR(OfDisk(index_.PutCopy(made)));
  row_ = made;
  is_whole_ = true;
  if (lost > 0) {
    left_ =
        StrCat("the copy lacks ", HumanBytes(lost), " of damaged pages",
               damage_.empty() ? "" : StrCat(" (", damage_, ")"), ": h5mirror verify names them");
  } else if (!damage_.empty()) {
    left_ = StrCat("the head has damaged pages, of which the archive has the bytes (", damage_,
                   "): h5mirror verify names them");
  }
  phase_ = Phase::kSweepLists;
  return absl::OkStatus();
}

// No later job and no other server may rely on a copy whose objects are being deleted, while calls
// of this job may still be under way.
absl::Status CopyJob::Doom() {
  WorkTurn turn(&file_.work_lock());
  H5M_RETURN_IF_ERROR(file_.dead());
  H5M_RETURN_IF_ERROR(OfDisk(index_.PutCopy({})));
  phase_ = Phase::kSweepLists;
  return absl::OkStatus();
}

bool CopyJob::IsNeeded(const std::string& name) const {
  if (copy_.prefix.empty()) return false;
  if (phase_ == Phase::kSweepLists) {
    return !NamesParts(name) || name == CopyListName(copy_.prefix);
  }
  return name == CopyListName(copy_.prefix) || IsNamedBy(copy_, name);
}

// Lists first: a copy must not count once its parts are being deleted.
absl::Status CopyJob::Sweep(Phase next) {
  if (!doomed_.empty()) {
    H5M_RETURN_IF_ERROR(store_.Delete(doomed_.front(), kDeleteTimeout));
    doomed_.pop_front();
    return absl::OkStatus();
  }
  if (is_listed_) {
    is_listed_ = false;
    list_next_.clear();
    phase_ = next;
    return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(const ObjectPage page, store_.List(CopyPrefix(files_.file_id()), list_next_,
                                                          kListAtOnce, ObjectCache::kGetTimeout));
  for (const ObjectInfo& object : page.objects) {
    const bool goes =
        forgets_ ? NamesParts(object.name) || phase_ == Phase::kSweepParts : !IsNeeded(object.name);
    if (goes) doomed_.push_back(object.name);
  }
  list_next_ = page.next;
  is_listed_ = page.next.empty();
  return absl::OkStatus();
}

absl::Status CopyJob::ForgetRow() {
  WorkTurn turn(&file_.work_lock());
  H5M_RETURN_IF_ERROR(file_.dead());
  H5M_RETURN_IF_ERROR(OfDisk(index_.DropCopy()));
  is_whole_ = true;
  phase_ = Phase::kDone;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
