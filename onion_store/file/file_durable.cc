// From visible to durable: syncs, then one index transaction. MakeDurable() takes the oldest
// waiting cuts up to the last one that is due, all of one generation. The order:
//
//   SyncBatch()    1. fdatasync of the head, if direct bytes were written or the generation is new;
//                     before a new one, the old head is cut off at its size and fdatasynced
//                  2. fdatasync of each segment of the stage that was written (stage_log.h)
//                  3. fsync of the history's directory, if a file was made in it
//   CommitBatch()  4. index transaction: the durable cut, the stage's end, new versions
//   FinishSwap()   5. only of a new generation G: link X.h5 to head-(G-1), fsync the history's
//                     directory, rename gen-G to X.h5, fsync the directory of X.h5
//   CommitBatch()  6. tell the waiters
//
// 4 is the moment of durability. It follows 1 to 3, as the index must never name bytes that a power
// loss can take. In 5 the old head must have its second name for good before its first one goes.
//
// The first cut of a file finds no index. There 3 syncs the names of the directories above X.h5.
// 4 makes the index, with 1 and 2 before the index gets its name. The fsync that names it names all
// that was made in the history before. Where names keep their order (base/names_in_order.h), the
// last fsync of 5 names all of that, and the others of the history are left out.
//
// A failed sync is never repeated, as a repeat would say OK. Die() ends the object, and the next
// open recovers from the index, whose name may be no more durable: SyncFoundNames().
//
// Where the disk has no room for 4, all of it is tried again later: the index is as before, and all
// that it would name is synced. That does not hold for the first cut of a file, whose syncs are
// within 4, and are taken once: it ends the object as a failed sync does.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "base/names_in_order.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/shared/file_owner.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kCompareBytes = 1 << 20;
constexpr absl::Duration kRetryApply = absl::Seconds(5);
// A writer that waits for an ack is told with each try.
constexpr absl::Duration kRetryDurable = absl::Seconds(1);

// The disk had no room. What could not be done again has killed the file.
bool IsPutOff(FileImpl& file, const absl::Status& status) {
  return absl::IsResourceExhausted(status) && file.dead().ok();
}

// The files with bytes of a batch from `first` to `last` that no sync covers. They count as synced
// from here on: where the caller does not get to that, the object dies.
std::vector<FileSync> TakeUnsynced(const CutLayer& first, const CutLayer& last) {
  std::vector<FileSync> syncs;
  Generation& generation = *first.generation;
  // The size belongs to what a cut promises: a generation that was never written still has one.
  if (generation.dirty.exchange(false) || generation.hidden) {
    syncs.push_back({generation.head.get()});
  }
  for (const auto& segment : last.segments) {
    if (segment->dirty.exchange(false)) syncs.push_back({segment->file.get()});
  }
  return syncs;
}

}  // namespace

BackgroundTimes FileImpl::RunBackground(BackgroundPool pool) {
  WorkTurn turn(&work_lock_);
  while (true) {
    if (const std::optional<BackgroundTimes> next = RunTask(pool)) return *next;
  }
}

FileImpl::Task FileImpl::NextTask(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (!health_.dead().ok()) return {Task::Kind::kTellOfDeath, {}, nullptr};
  if (IsDue(now)) return {Task::Kind::kMakeDurable, {}, nullptr};
  if (LayerPtr unapplied = OldestUnapplied()) {
    return {Task::Kind::kApply, {}, std::move(unapplied)};
  }
  if (cuts_.layers.empty() && !session_.is_writing()) history_.ClearMark();
  return {Task::Kind::kWait, NextDue(), nullptr};
}

absl::Time FileImpl::NextDurable(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (IsDue(now)) return absl::InfinitePast();
  const absl::Time next = NextDue();
  return next > now ? next : absl::InfiniteFuture();  // Else it waits for the apply.
}

std::optional<BackgroundTimes> FileImpl::RunTask(BackgroundPool pool) {
  const absl::Time now = context_->env.Now();
  const Task task = NextTask(now);
  if (task.kind == Task::Kind::kWait) return BackgroundTimes{.durable = task.until};
  if (task.kind == Task::Kind::kTellOfDeath) {
    TellWaiters(dead());
    return BackgroundTimes();
  }
  const bool applies = task.kind == Task::Kind::kApply;
  if (applies && context_->stops_applying) return BackgroundTimes();
  if (applies && pool != BackgroundPool::kApply) return BackgroundTimes{NextDurable(now), now};
  const absl::Status status = applies ? Apply(task.layer, Rounds::kUntilStopped) : MakeDurable(now);
  if (applies) NoteApplied(status);
  // What was put off, and what an apply may make room for.
  const bool goes_on = status.ok() || (!applies && IsPutOff(*this, status));
  // Somebody else's turn. What is to be applied, the pool of the durable ones finds.
  if (goes_on && work_lock_.is_wanted()) return BackgroundTimes{.durable = now};
  if (goes_on) return std::nullopt;
  if (applies && absl::IsResourceExhausted(status)) {
    return BackgroundTimes{NextDurable(now), now + kRetryApply};
  }
  Die(status);
  return BackgroundTimes();
}

void FileImpl::NoteApplied(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!health_.NoteApplied(status)) return;
  }
  context_->TellNotice(
      StoreNotice::Kind::kCannotApply, files_.name(),
      StrCat("stays where it is: its durable cuts are safe beside it and cannot ",
             "get into the head, which is tried again: ", ToStd(status.message())));
}

bool FileImpl::IsDue(absl::Time now) {
  return health_.durable_from() <= now && due_work_.IsDue(cuts_.layers, row_.durable_cut, now);
}

absl::Time FileImpl::NextDue() {
  return std::max(health_.durable_from(), due_work_.Next(cuts_.layers, row_.durable_cut));
}

FileImpl::Batch FileImpl::TakeBatch(absl::Time now) {
  Batch batch;
  batch.layers = due_work_.NextBatch(cuts_.layers, row_.durable_cut, now);
  if (batch.layers.empty()) return batch;
  for (const LayerPtr& layer : batch.layers) layer->frozen = true;
  batch.sync_directory = history_.TakeNewNames();
  if (stage_->TakeNamesChanged()) batch.sync_directory = true;
  return batch;
}

// kResourceExhausted of a file that is not dead: it was put off, and the waiters were told.
absl::Status FileImpl::MakeDurable(absl::Time now) {
  const absl::Status status = TryMakeDurable(now);
  const absl::Time ended = context_->env.Now();  // The try may have taken longer than the pause.
  const bool is_put_off = IsPutOff(*this, status);
  {
    absl::MutexLock lock(&mutex_);
    health_.TryNow();
    if (is_put_off) health_.PutOff(status, ended + kRetryDurable);
  }
  if (is_put_off) TellWaiters(status);
  return status;
}

absl::Status FileImpl::TryMakeDurable(absl::Time now) {
  std::optional<DueVersion> version;
  Batch batch;
  bool is_first = false;
  {
    absl::MutexLock lock(&mutex_);
    batch = TakeBatch(now);
    if (batch.layers.empty()) version = due_work_.TakeVersion(row_.durable_cut, now);
    is_first = index_ == nullptr;
  }
  if (version) return MakeDueVersion(*version);
  if (batch.layers.empty()) return absl::OkStatus();
  const absl::Status synced = SyncBatch(batch);
  const absl::Status made = synced.ok() ? CommitBatch(batch) : synced;
  if (made.ok()) return made;
  // What was to be synced is known to nobody any more. The syncs of a first cut are in its commit.
  const bool is_used_up = is_first || batch.layers.front()->generation->sums != nullptr;
  if (is_used_up && (is_first || !synced.ok())) {
    Die(made);
  } else if (!is_used_up && batch.sync_directory) {
    absl::MutexLock lock(&mutex_);
    history_.NoteNewName();  // Nothing was synced yet.
  }
  return made;
}

absl::Status FileImpl::MakeDueVersion(const DueVersion& version) {
  if (version.is_fold && HistoryStopped()) return absl::OkStatus();
  const absl::Status made = MakeVersionOfDurableCut(version.provenance, std::nullopt);
  absl::MutexLock lock(&mutex_);
  if (made.ok()) due_work_.LostCutIsVersion(version.cut);
  // The next try finds it again, unless a newer one came.
  if (!made.ok() && version.is_fold && !due_work_.has_fold()) {
    due_work_.AddFold(absl::InfinitePast(), version.provenance);
  }
  return made;
}

absl::Status FileImpl::SyncBatch(const Batch& batch) {
  bool sync_directory = batch.sync_directory;
  const GenerationPtr generation = batch.layers.front()->generation;
  if (generation->sums == nullptr) {
    H5M_ASSIGN_OR_RETURN(
        auto file, context_->tree->Open(files_.HistoryName(StrCat("sums-", generation->number)),
                                        OpenKind::kCreateFresh, 0600));
    auto sums = std::make_unique<SumsFile>(std::move(file), files_.page_size_bytes());
    absl::MutexLock lock(&mutex_);
    generation->sums = std::move(sums);
    sync_directory = true;
  }
  if (generation->hidden) H5M_RETURN_IF_ERROR(SyncOldHead(generation->number));
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  // The sync that names a new index names all that was made in the history before it.
  if (index == nullptr) return files_.SyncNamesAbove();
  H5M_RETURN_IF_ERROR(
      context_->tree->SyncAll(TakeUnsynced(*batch.layers.front(), *batch.layers.back())));
  return sync_directory ? context_->tree->SyncDirectory(files_.directory()) : absl::OkStatus();
}

absl::Status FileImpl::SyncOldHead(int64_t before) {
  GenerationPtr old;
  uint64_t size_bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto next = cuts_.old_generations.lower_bound(before);
    if (next == cuts_.old_generations.begin()) return absl::OkStatus();
    old = std::prev(next)->second;
    if (old->number != row_.generation) return absl::OkStatus();
    size_bytes = row_.applied_size_bytes;  // IsDue(): it has all of its cuts.
  }
  H5M_ASSIGN_OR_RETURN(const uint64_t found_bytes, old->head->Size());
  // Also where that seems to be done: no later sync covers what a failed one should have.
  if (found_bytes >= size_bytes) H5M_RETURN_IF_ERROR(old->head->Truncate(size_bytes));
  return old->head->Sync();
}

absl::Status FileImpl::CreateIndex(FileRow* row, absl::Span<const VersionRow> versions,
                                   const std::optional<GenerationRow>& begins,
                                   absl::Span<const FileSync> named) {
  row->file_id = files_.file_id();
  row->page_size_bytes = files_.page_size_bytes();
  const std::string owner = [&] {
    absl::MutexLock lock(&mutex_);
    return owner_;
  }();
  // Before the index, whose sync names it too.
  H5M_RETURN_IF_ERROR(NameOwner(*context_->tree, files_.directory(), owner));
  context_->owners.Forget(files_.name());
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<VersionIndex> index,
                       VersionIndex::Create(IndexPlaceOf(), *row, versions, begins, named));
  absl::MutexLock lock(&mutex_);
  index_ = std::move(index);
  row_ = *row;
  return absl::OkStatus();
}

absl::StatusOr<CommitPlan> FileImpl::PlanBatch(const Batch& batch, VersionIndex* index) {
  CommitBasis basis;
  std::vector<LayerPtr> below;  // durable, not applied
  {
    absl::MutexLock lock(&mutex_);
    basis.row = row_;
    basis.newest = newest_;
    basis.next_cut = cuts_.next;
    for (const LayerPtr& layer : cuts_.layers) {
      if (layer->durable) below.push_back(layer);
    }
  }
  if (!below.empty()) basis.unapplied_segment = below.front()->first_segment;
  const auto changes = [&](size_t i, uint64_t size_below)
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
                             std::vector<LayerPtr> lower = below;
                             lower.insert(lower.end(), batch.layers.begin(),
                                          batch.layers.begin() + static_cast<ptrdiff_t>(i));
                             return Changes(lower, batch.layers[i], size_below);
                           };
  const auto is_history_stopped = [this] { return HistoryStopped(); };
  const auto is_known_request = [&](const std::array<uint8_t, 16>& request_id) {
    return index != nullptr && index->FindRequest(request_id).ok();
  };
  return PlanCommit(basis, batch.layers, {changes, is_history_stopped, is_known_request});
}

absl::Status FileImpl::CommitBatch(const Batch& batch) {
  const std::shared_ptr<VersionIndex> index = [&] {
    absl::MutexLock lock(&mutex_);
    return index_;
  }();
  H5M_ASSIGN_OR_RETURN(CommitPlan plan, PlanBatch(batch, index.get()));
  H5M_RETURN_IF_ERROR(index == nullptr
                          ? CreateIndex(&plan.row, plan.versions, plan.begins,
                                        TakeUnsynced(*batch.layers.front(), *batch.layers.back()))
                          : index->CommitCuts(plan.row, plan.versions, plan.begins));
  if (plan.begins) {
    const absl::Status swapped = FinishSwap(*batch.layers.front()->generation);
    if (!swapped.ok()) Die(swapped);  // It is in the index: the next open goes on.
    H5M_RETURN_IF_ERROR(swapped);
  }
  for (auto& [on_durable, durable] : TakeInCommit(batch, plan)) on_durable(durable);
  if (!plan.versions.empty()) SaveMetadata();
  return absl::OkStatus();
}

std::vector<FileImpl::Answer> FileImpl::TakeInCommit(const Batch& batch, const CommitPlan& plan) {
  std::vector<Answer> answers;
  absl::MutexLock lock(&mutex_);
  row_ = plan.row;
  newest_ = plan.newest;
  for (const VersionRow& made : plan.versions) {
    const bool is_fork = made.info.source && made.info.source->kind == SourceKind::kFork;
    if (is_fork) forked_from_ = made.info.source;
  }
  // A version that was made after the fold holds what was folded. A fold may be newer than these.
  if (!plan.versions.empty() && batch.layers.back() == cuts_.layers.back()) due_work_.DropFold();
  for (size_t i = 0; i < batch.layers.size(); ++i) {
    CutLayer& layer = *batch.layers[i];
    layer.durable = true;
    if (plan.cuts[i].made != 0) layer.version = plan.cuts[i].made;
    for (CutWaiter& waiter : layer.waiters) {
      if (waiter.on_durable == nullptr) continue;
      answers.push_back({std::move(waiter.on_durable), AnswerTo(waiter, plan.cuts[i])});
    }
    layer.waiters.clear();
  }
  return answers;
}

absl::Status FileImpl::MakeVersionOfDurableCut(
    const Provenance& provenance, const std::optional<std::array<uint8_t, 16>>& request_id) {
  FileRow row;
  VersionInfo newest;
  std::shared_ptr<VersionIndex> index;
  LayerPtr layer;
  int64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    row = row_;
    newest = newest_;
    index = index_;
    generation = row_.generation;
    for (const LayerPtr& candidate : cuts_.layers) {
      if (candidate->cut == row_.durable_cut) layer = candidate;
    }
  }
  if (!row.changed || row.durable_cut == newest.cut) return absl::OkStatus();
  VersionInfo info;
  info.version = newest.version + 1;
  info.cut = row.durable_cut;
  row.server_time_ns = std::max(row.server_time_ns + 1, absl::ToUnixNanos(context_->env.Now()));
  info.server_time = absl::FromUnixNanos(row.server_time_ns);
  info.provenance = provenance;
  info.size_bytes = row.durable_size_bytes;
  info.generation = generation;
  info.changed_bytes = row.sent_bytes;
  info.changed_pages = row.changed_pages;
  row.changed = false;
  row.sent_bytes = 0;
  if (layer == nullptr) {
    row.applied_version = info.version;
    row.changed_pages = 0;
  }
  VersionRow version{info, request_id};
  H5M_RETURN_IF_ERROR(index->CommitCuts(row, {&version, 1}, std::nullopt));
  absl::MutexLock lock(&mutex_);
  row_ = row;
  newest_ = info;
  if (layer != nullptr) layer->version = info.version;
  if (layer == nullptr) saved_.SetNewestRows(NewestRows::kNone);
  return absl::OkStatus();
}

absl::Status FileImpl::FinishSwap(Generation& generation) {
  EnvTree& tree = *context_->tree;
  std::string fresh = files_.GenerationName(generation.number);
  H5M_ASSIGN_OR_RETURN(FileStat self, tree.Stat(fresh));
  auto there = tree.Stat(files_.name());
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  // Before the first generation: a file that was put there meanwhile.
  if (there.ok()) {
    // An earlier swap of which only the new name is durable.
    if (there->inode == self.inode) return tree.Remove(fresh);
    std::string old_head = files_.OldHeadName(generation.number - 1);
    absl::Status linked = tree.Link(files_.name(), old_head);
    if (!linked.ok() && !absl::IsAlreadyExists(linked)) {
      // No hard links here: for a moment there is no head.
      H5M_RETURN_IF_ERROR(tree.Rename(files_.name(), old_head));
    }
    // Where names keep their order, the rename is not durable before the link is.
    if (!KeepsNamesInOrder(tree)) H5M_RETURN_IF_ERROR(tree.SyncDirectory(files_.directory()));
  }
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, files_.name()));
  // Names the history itself too, where that is new. Should the old name come back with the power,
  // it is removed above.
  size_t slash = files_.name().rfind('/');
  H5M_RETURN_IF_ERROR(
      tree.SyncDirectory(slash == std::string::npos ? "" : files_.name().substr(0, slash)));
  absl::MutexLock lock(&mutex_);
  generation.hidden = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> FileImpl::Changes(const std::vector<LayerPtr>& below, const LayerPtr& top,
                                       uint64_t size_below) {
  const CutLayer& layer = *top;
  if (layer.size_bytes != size_below || !layer.data.direct().empty() ||
      layer.data.truncated_to() < size_below) {
    return true;
  }
  MemoryCharge charge(context_->budget, 2 * kCompareBytes);
  std::string now, before;
  std::vector<LayerPtr> with = below;
  with.push_back(top);
  for (uint64_t at = 0;;) {
    H5M_ASSIGN_OR_RETURN(std::optional<Extent> staged, layer.data.NextStaged(at));
    if (!staged) return false;
    Extent part{staged->offset, std::min(staged->length, kCompareBytes)};
    now.resize(part.length);
    before.resize(part.length);
    EnvFile& head = *layer.generation->head;
    H5M_RETURN_IF_ERROR(
        ReadThrough(with, head, layer.size_bytes, part.offset, absl::MakeSpan(now)));
    H5M_RETURN_IF_ERROR(ReadThrough(below, head, size_below, part.offset, absl::MakeSpan(before)));
    if (now != before) return true;
    at = part.end();
  }
}

void FileImpl::Die(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    DieLocked(status);
  }
  TellWaiters(dead());
}

void FileImpl::DieLocked(const absl::Status& status) {
  if (health_.Die(name(), status)) Post(absl::InfinitePast());
}

void FileImpl::TellWaiters(const absl::Status& why) {
  std::vector<CutWaiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    for (const LayerPtr& layer : cuts_.layers) {
      std::move(layer->waiters.begin(), layer->waiters.end(), std::back_inserter(waiters));
      layer->waiters.clear();
    }
  }
  for (CutWaiter& waiter : waiters) {
    if (waiter.on_durable) waiter.on_durable(why);
  }
}

absl::Status FileImpl::FlushLocked() {
  while (true) {
    LayerPtr unapplied;
    bool waiting = false;
    {
      absl::MutexLock lock(&mutex_);
      H5M_RETURN_IF_ERROR(health_.dead());
      unapplied = OldestUnapplied();
      due_work_.Hurry(cuts_.layers);
      waiting = due_work_.has_lost_cut() || due_work_.has_fold() ||
                (!cuts_.layers.empty() && !cuts_.layers.back()->durable);
    }
    if (unapplied == nullptr && !waiting) return absl::OkStatus();
    absl::Status status =
        unapplied != nullptr ? Apply(unapplied, Rounds::kAll) : MakeDurable(context_->env.Now());
    if (status.ok()) continue;
    if (!absl::IsResourceExhausted(status)) Die(status);
    return status;
  }
}

void FileImpl::Hurry() {
  {
    absl::MutexLock lock(&mutex_);
    due_work_.Hurry(cuts_.layers);
  }
  Post(absl::InfinitePast());
}

absl::Status FileImpl::MakeAllDurable() {
  absl::MutexLock work(&work_lock_);
  return MakeAllDurableLocked();
}

absl::Status FileImpl::MakeAllDurableLocked() {
  while (true) {
    absl::Time now = context_->env.Now();
    LayerPtr in_the_way;
    {
      absl::MutexLock lock(&mutex_);
      H5M_RETURN_IF_ERROR(health_.dead());
      due_work_.Hurry(cuts_.layers);
      health_.TryNow();
      if (NextDue() > now) return absl::OkStatus();
      if (!IsDue(now)) in_the_way = OldestUnapplied();
    }
    absl::Status status =
        in_the_way != nullptr ? Apply(in_the_way, Rounds::kAll) : MakeDurable(now);
    if (status.ok()) continue;
    if (!absl::IsResourceExhausted(status)) Die(status);
    return status;
  }
}

}  // namespace h5mirror::store
