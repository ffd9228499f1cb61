// What happens when a file is opened: docs/design/031-recovery.md.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/history_names.h"
#include "onion_store/shared/file_owner.h"
#include "onion_store/shared/new_name.h"

namespace h5mirror::store {
namespace {

// A history that a program used without a server (embedded_store.h) may still be in its hands.
absl::Status CheckNotEmbedded(EnvTree& tree, std::string_view name) {
  const std::string lock_name = StrCat(name, ".h5m/lock");
  H5M_ASSIGN_OR_RETURN(const bool used, tree.Exists(lock_name));
  if (!used) return absl::OkStatus();
  const auto lock = tree.Lock(lock_name, LockKind::kExclusive);
  if (!absl::IsFailedPrecondition(lock.status())) return lock.status();
  return absl::UnavailableError(
      StrCat(name, ": a program has it open with server=embedded; close it there first"));
}

// Whether stage-`number` holds no durable cut that is to be applied.
bool IsLeftoverStage(int64_t number, const FileRow* row) {
  const bool counts = row != nullptr && row->durable_cut > row->applied_cut;
  return !counts || number < static_cast<int64_t>(row->stage_first) ||
         number > static_cast<int64_t>(row->stage_last);
}

// Whether an entry of a history's directory is a leftover. `row`: null, where no cut is durable.
bool IsLeftover(std::string_view name, const FileRow* row) {
  if (NumberAfter(name, "run-") || name.substr(0, 9) == "index.new") return true;
  if (const auto number = NumberAfter(name, "stage-")) return IsLeftoverStage(*number, row);
  for (const char* prefix : {"gen-", "sums-"}) {
    if (const auto number = NumberAfter(name, prefix)) {
      return row == nullptr || *number > row->generation;
    }
  }
  if (const auto segment = NumberAfter(name, "pages-")) {
    return row == nullptr || *segment > static_cast<int64_t>(row->pages_segment);
  }
  return row == nullptr &&
         (name == "index" || name == "index-wal" || name == "index-journal" || IsOwnerEntry(name));
}

// Makes layers of the records of a stage: one for each durable cut that the head does not hold and
// that is a version, and one for the durable cut itself.
//
//   writes, truncations, ... --> layer() -- TakeCut() --> a cut of the head: dropped
//                                   |                --> a version, the durable cut: in layers()
//                                   +-- any other cut: goes on with the next one's records
class StageReplay {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;

  // `row` and `began`, its generation's, must outlive this, and `index` too. `fresh` makes an empty
  // layer.
  StageReplay(const FileRow& row, const GenerationRow& began, VersionIndex& index,
              std::function<LayerPtr()> fresh)
      : row_(row), began_(began), index_(index), fresh_(std::move(fresh)) {
    // What the generation's first durable cut wrote directly has no record.
    if (began.first_cut > row.applied_cut) {
      first_ = fresh_();
      first_->data.AddDirect({0, began.direct_end_bytes});
      first_->cut_bytes = began.direct_end_bytes;
      first_->begins_generation = true;
    }
    layer_ = fresh_();
  }

  // Takes the records up to the next cut.
  CutLayer& layer() { return *layer_; }
  absl::Status TakeCut(CutNumber cut, uint64_t size_bytes, absl::Span<const Extent> direct) {
    for (const Extent& extent : direct) layer_->data.AddDirect(extent);
    layer_->cut_bytes = std::max(layer_->cut_bytes, size_bytes);
    if (cut <= row_.applied_cut) {
      layer_ = fresh_();
      return absl::OkStatus();
    }
    if (first_ != nullptr) H5M_RETURN_IF_ERROR(TakeFirst(cut, size_bytes));
    H5M_ASSIGN_OR_RETURN(const VersionInfo version, VersionOf(cut));
    if (version.version == 0 && cut != row_.durable_cut) return absl::OkStatus();
    Close(std::exchange(layer_, nullptr), cut, size_bytes, version.version);
    layer_ = fresh_();
    return absl::OkStatus();
  }
  // There are no more records.
  absl::Status Finish() {
    if (first_ == nullptr) return absl::OkStatus();
    // No record: the first cut is the newest. Taken for none, a version's pages would not be saved
    // before they are overwritten.
    H5M_ASSIGN_OR_RETURN(const VersionInfo version, VersionOf(row_.durable_cut));
    Close(first_, row_.durable_cut, row_.durable_size_bytes, version.version);
    return absl::OkStatus();
  }

  const std::deque<LayerPtr>& layers() const { return layers_; }

 private:
  // The first cut of the generation is a layer of its own only if it is an older version.
  absl::Status TakeFirst(CutNumber cut, uint64_t size_bytes) {
    const LayerPtr first = std::exchange(first_, nullptr);
    H5M_ASSIGN_OR_RETURN(const VersionInfo version, VersionOf(began_.first_cut));
    if (version.version != 0 && began_.first_cut < cut) {
      Close(first, began_.first_cut, version.size_bytes, version.version);
      return absl::OkStatus();
    }
    H5M_RETURN_IF_ERROR(first->data.Absorb(layer_->data));
    first->cut_bytes = std::max(first->cut_bytes, size_bytes);
    if (layer_->revert_pin != nullptr) first->revert_pin = layer_->revert_pin;
    layer_ = first;
    return absl::OkStatus();
  }

  // Number 0: the cut is no version.
  absl::StatusOr<VersionInfo> VersionOf(CutNumber cut) {
    auto version = index_.FindCut(cut);
    if (version.ok()) return std::move(version->info);
    if (absl::IsNotFound(version.status())) return VersionInfo();
    return version.status();
  }

  void Close(LayerPtr layer, CutNumber cut, uint64_t size_bytes, VersionNumber version) {
    layer->cut = cut;
    layer->size_bytes = size_bytes;
    layer->version = version;
    layer->origin = row_.origin;
    layer->mode_bits = row_.mode_bits;
    layer->local = row_.local;
    layers_.push_back(std::move(layer));
  }

  const FileRow& row_;
  const GenerationRow& began_;
  VersionIndex& index_;
  const std::function<LayerPtr()> fresh_;
  LayerPtr first_;  // the first cut of the generation, until a record follows it
  LayerPtr layer_;
  std::deque<LayerPtr> layers_;  // oldest first
};

// Names the head, too.
absl::Status SyncNameOfHistory(EnvTree& tree, const std::string& history) {
  const size_t slash = history.rfind('/');
  return tree.SyncDirectory(slash == std::string::npos ? "" : history.substr(0, slash));
}

// An index that is found, and its head, may be named in memory only: the life that named them died
// of that sync, or before it. An open tells of durable cuts.
absl::Status SyncFoundNames(EnvTree& tree, const std::string& history) {
  H5M_RETURN_IF_ERROR(tree.SyncDirectory(history));
  return SyncNameOfHistory(tree, history);
}

// Nothing else needs what a file is a fork of: with a damaged row it opens without it. A read that
// failed may succeed the next time.
absl::StatusOr<std::optional<SourceVersion>> ForkedFromUnlessDamaged(VersionIndex& index) {
  auto found = index.ForkedFrom();
  if (absl::IsDataLoss(found.status())) return std::nullopt;
  return found;
}

}  // namespace

absl::StatusOr<std::shared_ptr<FileImpl>> FileImpl::Load(std::shared_ptr<StoreContext> context,
                                                         std::string_view name,
                                                         IfMissing if_missing,
                                                         uint32_t page_size_bytes) {
  EnvTree& tree = *context->tree;
  if (context->kind == StoreKind::kRoot) H5M_RETURN_IF_ERROR(CheckNotEmbedded(tree, name));
  auto file = std::make_shared<FileImpl>(context, std::string(name));
  FileImpl& self = *file;
  auto opened = VersionIndex::Open(self.IndexPlaceOf());
  FileRow row;
  if (opened.ok()) {
    H5M_ASSIGN_OR_RETURN(row, (*opened)->ReadFileRow());
  } else if (!absl::IsNotFound(opened.status())) {
    return opened.status();
  }
  if (row.durable_cut > 0) {
    self.files_.Identify(row.file_id, row.page_size_bytes);
    absl::MutexLock work(&self.work_lock_);
    {
      absl::MutexLock lock(&self.mutex_);
      self.index_ = *std::move(opened);
    }
    const Numbers numbers = if_missing == IfMissing::kFail ? Numbers::kLater : Numbers::kNow;
    if (!self.IsClosed(row)) {
      H5M_RETURN_IF_ERROR(SyncFoundNames(tree, self.files_.directory()));
    }
    H5M_RETURN_IF_ERROR(self.Recover(std::move(row), numbers));
    if (context->kind == StoreKind::kRoot) {
      self.LoadMetadata();
      // As the last server's followers may come back (NoteChanges() in file.h).
      absl::MutexLock lock(&self.mutex_);
      self.change_log_.Expect(self.cuts_.last.number, context->env.Now());
    }
    self.Post(absl::InfinitePast());
    return file;
  }
  if (if_missing == IfMissing::kFail) {
    const auto entries = tree.List(self.files_.directory());
    if (entries.ok()) H5M_RETURN_IF_ERROR(self.CheckNothingDurable(*entries));
    return absl::NotFoundError(StrCat("no file ", name, "; see h5mirror ls"));
  }
  if (context->kind == StoreKind::kRoot) H5M_RETURN_IF_ERROR(CheckNewName(name));
  if (opened.ok()) opened->reset();
  self.files_.Identify(RandomBytes16(), page_size_bytes);
  H5M_RETURN_IF_ERROR(self.RemoveLeftovers(nullptr));
  auto head = tree.Stat(name);
  if (head.ok()) {
    H5M_RETURN_IF_ERROR(
        self.TakeInPlainFile(context->kind == StoreKind::kRoot ? "found on the server" : "found"));
    self.Post(absl::InfinitePast());
    return file;
  }
  if (!absl::IsNotFound(head.status())) return head.status();
  absl::MutexLock lock(&self.mutex_);
  self.row_.cut_reserved = kCutReserve;
  self.stage_ = self.EmptyStage();
  self.cuts_.last.stage_end = self.stage_->end();
  return file;
}

absl::StatusOr<std::shared_ptr<FileImpl>> FileImpl::LoadToRead(
    std::shared_ptr<StoreContext> context, std::string_view name) {
  auto file = std::make_shared<FileImpl>(context, std::string(name));
  FileImpl& self = *file;
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<VersionIndex> index,
                       VersionIndex::Open(self.IndexPlaceOf(), IndexUse::kRead));
  H5M_ASSIGN_OR_RETURN(const FileRow row, index->ReadFileRow());
  self.files_.Identify(row.file_id, row.page_size_bytes);
  H5M_RETURN_IF_ERROR(self.CheckAtRest(row));
  H5M_ASSIGN_OR_RETURN(const VersionRow newest, index->Newest());
  H5M_ASSIGN_OR_RETURN(GenerationPtr generation,
                       self.OpenGeneration(row.generation, self.files_.name(), OpenKind::kRead));
  H5M_ASSIGN_OR_RETURN(std::optional<SourceVersion> forked_from, ForkedFromUnlessDamaged(*index));
  absl::MutexLock lock(&self.mutex_);
  self.forked_from_ = std::move(forked_from);
  self.index_ = std::move(index);
  self.newest_ = newest.info;
  self.cuts_.base = std::move(generation);
  self.cuts_.last.number = row.durable_cut;
  self.cuts_.last.size_bytes = row.durable_size_bytes;
  self.cuts_.last.time = absl::FromUnixNanos(row.server_time_ns);
  self.cuts_.last.barrier = row.durable_barrier;
  self.row_ = row;
  self.stage_ = self.EmptyStage();
  return file;
}

bool FileImpl::IsClosed(const FileRow& row) {
  const auto was_open = context_->tree->Exists(files_.OpenMarkName());
  return was_open.ok() && !*was_open && CheckAtRest(row).ok();
}

absl::Status FileImpl::CheckAtRest(const FileRow& row) {
  H5M_ASSIGN_OR_RETURN(const bool unswapped,
                       context_->tree->Exists(files_.GenerationName(row.generation)));
  const auto head = context_->tree->Stat(files_.name());
  if (!head.ok() && !absl::IsNotFound(head.status())) return head.status();
  if (head.ok() && !unswapped && row.durable_cut == row.applied_cut && *head == row.head) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      StrCat(files_.name(), " must be recovered before it is read"));
}

absl::Status FileImpl::CheckNothingDurable(const std::vector<DirectoryEntry>& entries) const {
  for (const DirectoryEntry& entry : entries) {
    if (!ProvesAnIndex(entry.name)) continue;
    return absl::DataLossError(StrCat(files_.directory(), " holds ", entry.name,
                                      " and no index that names "
                                      "it: put the index back, or remove ",
                                      files_.directory(), " to forget the file's history"));
  }
  return absl::OkStatus();
}

absl::Status FileImpl::RemoveLeftovers(const FileRow* row) {
  auto entries = context_->tree->List(files_.directory());
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(entries.status());
  if (row == nullptr) H5M_RETURN_IF_ERROR(CheckNothingDurable(*entries));
  {
    absl::MutexLock lock(&mutex_);
    owner_ = row == nullptr ? std::string() : OwnerIn(*entries);
  }
  for (const DirectoryEntry& entry : *entries) {
    if (!IsLeftover(entry.name, row)) continue;
    H5M_RETURN_IF_ERROR(context_->tree->Remove(files_.HistoryName(entry.name)));
  }
  return absl::OkStatus();
}

absl::Status FileImpl::Recover(FileRow row, Numbers numbers) {
  H5M_RETURN_IF_ERROR(RemoveLeftovers(&row));
  // A write costs syncs. What is not at rest is opened for good.
  if (numbers == Numbers::kLater && !IsClosed(row)) numbers = Numbers::kNow;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    index = index_;
  }
  H5M_ASSIGN_OR_RETURN(VersionRow newest, index->Newest());
  H5M_ASSIGN_OR_RETURN(uint64_t size_max, index->SizeMax(row.generation));
  // Only where it is known to be there: without gen-N there is nothing to swap in.
  H5M_ASSIGN_OR_RETURN(const bool unswapped,
                       context_->tree->Exists(files_.GenerationName(row.generation)));
  if (unswapped) {
    Generation swapped;
    swapped.number = row.generation;
    H5M_RETURN_IF_ERROR(FinishSwap(swapped));
  }
  H5M_ASSIGN_OR_RETURN(GenerationPtr generation,
                       OpenGeneration(row.generation, files_.name(), OpenKind::kWrite));
  generation->cut_bytes = std::max({size_max, row.durable_size_bytes, row.applied_size_bytes});
  H5M_ASSIGN_OR_RETURN(std::optional<SourceVersion> forked_from, ForkedFromUnlessDamaged(*index));
  {
    absl::MutexLock lock(&mutex_);
    forked_from_ = std::move(forked_from);
    newest_ = newest.info;
    cuts_.base = generation;
    // The numbers up to the mark may have been given; the first durable cut moves it. Of a store
    // that was put back from a copy those beyond may have been, too, but none beyond the time of
    // day: there was less than one cut in a microsecond.
    cuts_.next = std::max(row.cut_reserved, absl::ToUnixMicros(context_->env.Now()));
    cuts_.last.number = row.durable_cut;
    cuts_.last.size_bytes = row.durable_size_bytes;
    cuts_.last.time = absl::FromUnixNanos(row.server_time_ns);
    cuts_.last.barrier = row.durable_barrier;
    history_.Loaded();
    row_ = row;
    stage_ = EmptyStage();
    stage_->StartAt(row.stage_last + 1);
    cuts_.last.stage_end = stage_->end();
  }
  if (numbers == Numbers::kNow) {
    // On a full disk the file can be read; what makes cuts reserves them then.
    const absl::Status reserved = ReserveNumbers();
    if (!absl::IsResourceExhausted(reserved)) H5M_RETURN_IF_ERROR(reserved);
  }
  if (row.durable_cut > row.applied_cut) H5M_RETURN_IF_ERROR(ReplayStage());
  H5M_RETURN_IF_ERROR(CheckHead());
  absl::Status fits = GoBackToFit();
  if (!fits.ok()) Die(fits);  // The background may know this object by now.
  return fits;
}

absl::Status FileImpl::ReplayStage() {
  absl::MutexLock lock(&mutex_);
  const FileRow& row = row_;
  const GenerationPtr generation = cuts_.base;
  H5M_ASSIGN_OR_RETURN(GenerationRow began, index_->GetGeneration(row.generation));
  auto stage = EmptyStage();
  H5M_RETURN_IF_ERROR(stage->Open(row.stage_first, {row.stage_last, row.stage_end_bytes}));
  stage_ = std::move(stage);

  auto fresh = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto layer = std::make_shared<CutLayer>(context_->budget, *context_->tree, files_.directory());
    layer->generation = generation;
    layer->segments = stage_->segments();
    layer->pages = Pages();
    layer->first_segment = row.stage_first;
    layer->recovered = layer->frozen = layer->durable = true;
    return layer;
  };
  StageReplay replay(row, began, *index_, fresh);
  StageVisitor visitor;
  visitor.on_write = [&](Extent extent, StageLocation at) {
    return replay.layer().data.Put(extent, at);
  };
  visitor.on_revert = [&](const Revert& revert) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ReplayRevert(revert, &replay.layer());
  };
  visitor.on_truncate = [&](uint64_t size_bytes) {
    return replay.layer().data.Truncate(size_bytes);
  };
  visitor.on_cut = [&](CutNumber cut, uint64_t size_bytes, absl::Span<const Extent> direct,
                       StageEnd) { return replay.TakeCut(cut, size_bytes, direct); };
  H5M_RETURN_IF_ERROR(stage_->Replay(visitor));
  cuts_.last.stage_end = stage_->end();
  H5M_RETURN_IF_ERROR(replay.Finish());
  cuts_.layers = replay.layers();
  // Up to there their apply clears what was cut off, also of a cut that was as large, became
  // durable with a smaller one, and is in no index: a writer's direct bytes must lie beyond.
  for (const LayerPtr& each : cuts_.layers) {
    generation->cut_bytes = std::max(generation->cut_bytes, each->cut_bytes);
  }
  if (cuts_.layers.empty() || cuts_.layers.back()->cut != row.durable_cut) {
    return absl::DataLossError(StrCat(files_.directory(), ": the stage does not hold cut ",
                                      row.durable_cut, ", which was durable"));
  }
  return absl::OkStatus();
}

absl::Status FileImpl::ReplayRevert(const Revert& revert, CutLayer* layer) {
  // Of a cut that the head holds: a prune may have removed the segment.
  if (revert.after < row_.applied_cut) return absl::OkStatus();
  std::string bytes(revert.extent.length, '\0');
  H5M_RETURN_IF_ERROR(layer->pages->ReadAt(revert.at, absl::MakeSpan(bytes)));
  if (Crc32c(bytes) != revert.crc) {
    return absl::DataLossError(StrCat(files_.directory(), ": the page at ", revert.extent.offset,
                                      " that a rollback brings back does not match its checksum"));
  }
  layer->revert_pin = saved_.revert_pin();
  return layer->data.Put(revert.extent, revert.at);
}

absl::Status FileImpl::CheckHead() {
  uint64_t needed = 0;
  bool clean = false;
  GenerationPtr generation;
  FileRow row;
  {
    absl::MutexLock lock(&mutex_);
    generation = cuts_.base;
    row = row_;
    needed = row.applied_size_bytes;
    for (const LayerPtr& layer : cuts_.layers) {
      needed = std::max(needed, std::min(layer->data.direct().end(), layer->size_bytes));
    }
    clean = cuts_.layers.empty();
  }
  H5M_ASSIGN_OR_RETURN(FileStat stat, generation->head->Stat());
  H5M_ASSIGN_OR_RETURN(const bool was_open, context_->tree->Exists(files_.OpenMarkName()));
  bool outside = clean && row.head.inode != 0 && stat != row.head;
  // A writer's uncut bytes. Where no server guards the file anybody may have written it since the
  // crash: there it is read and compared.
  if (was_open && context_->kind == StoreKind::kRoot && !IsTakingIn(row) &&
      stat.inode == row.head.inode &&
      stat.size_bytes >= static_cast<int64_t>(row.applied_size_bytes)) {
    outside = false;
  }
  if (outside) {
    H5M_RETURN_IF_ERROR(ReserveNumbers());
    H5M_RETURN_IF_ERROR(TakeInOutsideChange(stat.size_bytes));
  } else if (stat.size_bytes > static_cast<int64_t>(needed)) {
    H5M_RETURN_IF_ERROR(generation->head->Truncate(needed));
  }
  absl::MutexLock lock(&mutex_);
  // Not now: that would change the times of each head that a crash left, which the next open
  // compares.
  generation->may_lack_cut = was_open || !clean || stat != row.head;
  history_.FoundMark(was_open);
  cuts_.last.lacks_version = was_open && row_.changed;
  return absl::OkStatus();
}

absl::Status FileImpl::TakeInPlainFile(std::string_view comment) {
  absl::MutexLock work(&work_lock_);
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(history_.Make());
  }
  H5M_ASSIGN_OR_RETURN(auto head, context_->tree->Open(files_.name(), OpenKind::kWrite, 0));
  H5M_RETURN_IF_ERROR(head->Sync());
  H5M_ASSIGN_OR_RETURN(FileStat stat, head->Stat());
  H5M_RETURN_IF_ERROR(SyncNameOfHistory(*context_->tree, files_.directory()));
  H5M_RETURN_IF_ERROR(files_.SyncNamesAbove());
  FileRow row;
  row.cut_reserved = kCutReserve;
  row.generation = 1;
  row.durable_cut = 1;
  row.durable_size_bytes = stat.size_bytes;
  row.server_time_ns = absl::ToUnixNanos(context_->env.Now());
  VersionRow version;
  version.info.version = 1;
  version.info.cut = 1;
  version.info.generation = 1;
  version.info.server_time = absl::FromUnixNanos(row.server_time_ns);
  version.info.provenance.comment = std::string(comment);
  version.info.size_bytes = stat.size_bytes;
  version.info.changed_bytes = stat.size_bytes;
  GenerationRow began{1, 1, static_cast<uint64_t>(stat.size_bytes)};
  H5M_RETURN_IF_ERROR(CreateIndex(&row, {&version, 1}, began, {}));
  // Makes and names sums-1, whose sync covers the index's name where that has none of its own.
  return Recover(row, Numbers::kNow);
}

}  // namespace h5mirror::store
