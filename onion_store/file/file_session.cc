// What a writer calls.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/shared/head_access.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kStageRotateBytes = uint64_t{64} << 20;
constexpr CutNumber kReserveMargin = 1024;

absl::Status CheckExtents(absl::Span<const Extent> extents,
                          absl::Span<const std::string_view> pieces) {
  uint64_t extent_bytes = 0, piece_bytes = 0;
  for (const Extent& extent : extents) {
    if (extent.offset > INT64_MAX || extent.length > INT64_MAX - extent.offset) {
      return absl::InvalidArgumentError(
          StrCat("write of ", extent.length, " bytes at ", extent.offset, " leads beyond 2^63-1"));
    }
    extent_bytes += extent.length;
  }
  for (std::string_view piece : pieces) piece_bytes += piece.size();
  if (extent_bytes == piece_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the extents have ", extent_bytes, " bytes, the data ", piece_bytes));
}

}  // namespace

absl::StatusOr<Token> FileImpl::Acquire() {
  H5M_ASSIGN_OR_RETURN(Token token, context_->tokens.Next());
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (session_.is_writing()) H5M_RETURN_IF_ERROR(EndLocked(SessionEnd::kLost));
  session_.Lease(token);
  return token;
}

absl::Status FileImpl::Begin(Token token, SessionStart start, const Origin& origin,
                             const LocalAccess& local) {
  const auto has_numbers = [this] {
    absl::MutexLock lock(&mutex_);
    return HasNumbers();
  };
  if (!has_numbers()) {
    WorkTurn turn(&work_lock_);
    H5M_RETURN_IF_ERROR(ReserveNumbers());
  }
  bool is_made = false;
  {
    absl::MutexLock lock(&mutex_);
    is_made = !HasCut();
    H5M_RETURN_IF_ERROR(BeginFor(token, start, origin, local));
  }
  if (is_made) context_->TellOfOwner(files_.name());
  return absl::OkStatus();
}

absl::Status FileImpl::BeginFor(Token token, SessionStart start, const Origin& origin,
                                const LocalAccess& local) {
  H5M_RETURN_IF_ERROR(health_.dead());
  H5M_RETURN_IF_ERROR(session_.CheckLease(files_.name(), token));
  if (session_.is_writing()) {
    return absl::FailedPreconditionError(StrCat(files_.name(), ": the session has begun already"));
  }
  if (open_.is_open()) {
    return absl::UnavailableError(StrCat(files_.name(), ": a rollback is under way, try again"));
  }
  const HeadAccess access(*context_, files_.name());
  if (start == SessionStart::kContinue && cuts_.base != nullptr) {
    H5M_RETURN_IF_ERROR(access.Narrow(*cuts_.base->head, local));
  }
  H5M_RETURN_IF_ERROR(BeginLocked(start, {origin, local.mode_bits & 0777},
                                  [&](EnvFile& head) { return access.Give(head, local); }));
  if (!HasCut()) owner_ = CheckOwner(local.owner).ok() ? local.owner : std::string();
  session_.Begin();
  return absl::OkStatus();
}

absl::Status FileImpl::BeginLocked(SessionStart start, const WriterFacts& facts, GiveAccess give) {
  H5M_RETURN_IF_ERROR(history_.Make());
  const bool is_new = start == SessionStart::kNewGeneration || cuts_.base == nullptr;
  GenerationPtr written = cuts_.base;
  if (is_new) {
    H5M_ASSIGN_OR_RETURN(written, NewGenerationLocked(give));
  }
  history_.SetMark();
  open_.Open(facts, NewLayer(written), is_new ? 0 : cuts_.last.size_bytes,
             files_.page_size_bytes());
  return absl::OkStatus();
}

absl::StatusOr<FileImpl::GenerationPtr> FileImpl::NewGenerationLocked(GiveAccess give) {
  auto fresh = EmptyGeneration();
  fresh->number = std::max(row_.generation, cuts_.base == nullptr ? 0 : cuts_.base->number) + 1;
  fresh->hidden = true;
  std::string name = files_.GenerationName(fresh->number);
  H5M_ASSIGN_OR_RETURN(fresh->head, context_->tree->Open(name, OpenKind::kCreateFresh, 0600));
  H5M_RETURN_IF_ERROR(give(*fresh->head));
  history_.NoteNewName();
  metadata_.Clear();
  return fresh;
}

FileImpl::LayerPtr FileImpl::NewLayer(const GenerationPtr& written) {
  auto layer = std::make_shared<CutLayer>(context_->budget, *context_->tree, files_.directory());
  layer->generation = written;
  layer->pages = Pages();
  layer->begins_generation = !written->has_cut;
  layer->first_segment = stage_->end().segment;
  return layer;
}

absl::Status FileImpl::Write(Token token, absl::Span<const Extent> extents,
                             absl::Span<const std::string_view> pieces) {
  H5M_RETURN_IF_ERROR(CheckExtents(extents, pieces));
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  H5M_RETURN_IF_ERROR(session_.CheckCanWrite(files_.name(), token));
  return session_.Note(token, WriteLocked(extents, pieces));
}

absl::Status FileImpl::WriteLocked(absl::Span<const Extent> extents,
                                   absl::Span<const std::string_view> pieces) {
  for (const Extent& extent : extents) {
    H5M_RETURN_IF_ERROR(context_->CheckFileSize(files_.name(), extent.end()));
  }
  return open_.Write(*stage_, cuts_.last.number, extents, pieces);
}

absl::Status FileImpl::Truncate(Token token, uint64_t size_bytes) {
  if (size_bytes > INT64_MAX) {
    return absl::InvalidArgumentError(StrCat("truncate to ", size_bytes, " bytes"));
  }
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  H5M_RETURN_IF_ERROR(session_.CheckCanWrite(files_.name(), token));
  return session_.Note(token, TruncateLocked(size_bytes));
}

absl::Status FileImpl::TruncateLocked(uint64_t size_bytes) {
  H5M_RETURN_IF_ERROR(context_->CheckFileSize(files_.name(), size_bytes));
  return open_.Truncate(*stage_, cuts_.last.number, size_bytes);
}

absl::Status FileImpl::ReadNewest(Token token, uint64_t offset, absl::Span<char> out) {
  if (offset > INT64_MAX || out.size() > INT64_MAX - offset) {
    return absl::InvalidArgumentError(StrCat(files_.name(), ": read beyond 2^63-1"));
  }
  // Held over the read: what is applied meanwhile leaves the stage.
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  H5M_RETURN_IF_ERROR(session_.CheckWriting(files_.name(), token));
  const LayerPtr& open = open_.layer();
  std::vector<LayerPtr> layers = cuts_.LayersOf(*open->generation);
  layers.push_back(open);
  // What it has staged so far; a cut notes it for good.
  open->segments = stage_->segments();
  absl::Status read = ReadThrough(layers, *open->generation->head, open_.size_bytes(), offset, out);
  open->segments.clear();
  return read;
}

absl::StatusOr<CutNumber> FileImpl::Cut(
    Token token, CutRequest request, std::function<void(absl::StatusOr<DurableCut>)> on_durable) {
  if (request.size_bytes > INT64_MAX) {
    return absl::InvalidArgumentError(StrCat("cut of ", request.size_bytes, " bytes"));
  }
  absl::Time due;
  CutNumber cut;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    H5M_RETURN_IF_ERROR(session_.CheckCanWrite(files_.name(), token));
    CutWaiter waiter{0, request.barrier, request.kind, std::move(on_durable)};
    auto made = CutLocked(request, std::move(waiter));
    // While it waited for a number another session may have begun: Note() leaves that as it is.
    H5M_RETURN_IF_ERROR(session_.Note(token, made.status()));
    cut = *made;
    session_.NoteCut(request.provenance);
    due = NextDue();
  }
  Post(due);
  context_->TellOfCut(files_.name(), cut);
  return cut;
}

absl::Status FileImpl::ReserveNumbers() {
  std::shared_ptr<VersionIndex> index;
  FileRow row;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (HasNumbers()) return absl::OkStatus();
    index = index_;
    row = row_;
    row.cut_reserved = cuts_.next + kCutReserve;
  }
  if (const absl::Status written = index->WriteFileRow(row); !written.ok()) {
    // After a failed sync the index must be opened again; a full disk may have room the next time.
    if (!absl::IsResourceExhausted(written)) Die(written);
    return written;
  }
  absl::MutexLock lock(&mutex_);
  row_ = row;
  return absl::OkStatus();
}

absl::Status FileImpl::AwaitFreeNumber() {
  // The mark moves with every durable cut. A writer that makes 65536 cuts in between waits.
  if (cuts_.next + kReserveMargin < row_.cut_reserved) return absl::OkStatus();
  for (const LayerPtr& layer : cuts_.layers) layer->due = absl::InfinitePast();
  Post(absl::InfinitePast());
  auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return cuts_.next < row_.cut_reserved || !health_.dead().ok() || !health_.durable_error().ok();
  };
  const LayerPtr mine = open_.layer();
  mutex_.Await(absl::Condition(&free));
  H5M_RETURN_IF_ERROR(health_.dead());
  if (cuts_.next >= row_.cut_reserved) H5M_RETURN_IF_ERROR(health_.durable_error());
  if (open_.layer() != mine)
    return absl::AbortedError(StrCat(files_.name(), ": the session was fenced"));
  return absl::OkStatus();
}

absl::StatusOr<CutNumber> FileImpl::CutLocked(const CutRequest& request, CutWaiter waiter) {
  H5M_RETURN_IF_ERROR(AwaitFreeNumber());
  H5M_RETURN_IF_ERROR(TruncateLocked(request.size_bytes));
  const CutNumber cut = cuts_.next;
  LastCut& last = cuts_.last;
  LayerPtr layer = open_.layer();
  const GenerationPtr written = open_.generation();
  const uint64_t sent_bytes = layer->sent_bytes;
  H5M_RETURN_IF_ERROR(open_.TakeCut(*stage_, cut, request));
  ++cuts_.next;
  change_log_.AddLayer(cut, *layer, std::max(last.size_bytes, open_.size_bytes()), context_->env);
  const bool is_fold = request.version_at != absl::InfiniteFuture();
  if (is_fold) due_work_.AddFold(request.version_at, request.provenance);
  layer->time = context_->env.Now();
  layer->due = request.kind == BarrierKind::kTick ? layer->time + context_->options.durable_every
                                                  : absl::InfinitePast();
  last.time = layer->time;
  waiter.cut = cut;
  layer->waiters.push_back(std::move(waiter));

  if (!cuts_.layers.empty() && MayMerge(*cuts_.layers.back(), *layer)) {
    H5M_RETURN_IF_ERROR(MergeInto(*cuts_.layers.back(), *layer));
  } else {
    cuts_.layers.push_back(std::move(layer));
  }
  written->has_cut = true;
  written->cut_bytes = std::max(written->cut_bytes, request.size_bytes);
  cuts_.MoveTo(written);
  last.number = cut;
  last.lacks_version = request.kind != BarrierKind::kCommit && !is_fold;
  last.written_bytes += sent_bytes;
  last.size_bytes = open_.size_bytes();
  last.barrier = request.barrier;
  // Else at the next cut.
  if (stage_->end().bytes > kStageRotateBytes) stage_->Rotate().IgnoreError();
  last.stage_end = stage_->end();
  open_.Continue(NewLayer(written));
  return cut;
}

bool FileImpl::MayMerge(const CutLayer& lower, const CutLayer& upper) const {
  return !lower.frozen && !upper.frozen && lower.kind != BarrierKind::kCommit &&
         lower.generation == upper.generation && !pins_.Has(lower.cut);
}

absl::Status FileImpl::MergeInto(CutLayer& lower, CutLayer& upper) {
  absl::Status merged;
  {
    absl::MutexLock merging(&merge_mutex_);
    merged = lower.data.Absorb(upper.data);
  }
  if (!merged.ok()) {
    // Half of the new cut lies over an older one that somebody was promised.
    DieLocked(merged);
    return health_.dead();
  }
  lower.cut = upper.cut;
  lower.size_bytes = upper.size_bytes;
  lower.cut_bytes = std::max(lower.cut_bytes, upper.cut_bytes);
  lower.kind = std::max(lower.kind, upper.kind);
  lower.barrier = upper.barrier;
  lower.provenance = std::move(upper.provenance);
  lower.origin = upper.origin;
  lower.mode_bits = upper.mode_bits;
  lower.local = upper.local;
  if (upper.request_id.has_value()) lower.request_id = upper.request_id;
  if (upper.source.has_value()) lower.source = std::move(upper.source);
  lower.group = std::move(upper.group);
  lower.is_writers_last = upper.is_writers_last;
  lower.always_version = lower.always_version || upper.always_version;
  lower.segments = upper.segments;
  lower.stage_end = upper.stage_end;
  lower.time = upper.time;
  lower.due = std::min(lower.due, upper.due);
  lower.sent_bytes += upper.sent_bytes;
  if (upper.revert_pin != nullptr) lower.revert_pin = upper.revert_pin;
  std::move(upper.waiters.begin(), upper.waiters.end(), std::back_inserter(lower.waiters));
  upper.waiters.clear();
  return absl::OkStatus();
}

absl::Status FileImpl::End(Token token, SessionEnd end) {
  absl::MutexLock lock(&mutex_);
  if (!health_.dead().ok()) return health_.dead();
  H5M_RETURN_IF_ERROR(session_.CheckLease(files_.name(), token));
  absl::Status ended = session_.is_writing() ? EndLocked(end) : absl::OkStatus();
  session_.End();
  return ended;
}

absl::Status FileImpl::EndLocked(SessionEnd end) {
  absl::Status dropped = DropOpen();
  if (!dropped.ok()) DieLocked(dropped);  // Uncut bytes are where they must not be: recover.
  if (end == SessionEnd::kLost) MakeVersionOfLastCut();
  for (const LayerPtr& layer : cuts_.layers) {
    if (!layer->frozen) layer->due = absl::InfinitePast();
  }
  session_.End();
  if (cuts_.layers.empty()) GiveStageBack();
  if (cuts_.layers.empty() && !due_work_.has_lost_cut()) {
    history_.ClearMark();
    if (row_.durable_cut == 0) {
      history_.RemoveEmpty();  // An empty store leaves no trace.
    }
  }
  Post(absl::InfinitePast());
  return dropped;
}

void FileImpl::GiveStageBack() {
  if (stage_ == nullptr || !health_.dead().ok()) return;
  // Else it stays, and is emptied by the next session or removed by the next open.
  stage_->Reset(0).IgnoreError();
  cuts_.last.stage_end = stage_->end();
}

absl::Status FileImpl::DropOpen() {
  if (!open_.is_open()) return absl::OkStatus();
  const GenerationPtr written = open_.generation();
  const bool all_applied = cuts_.layers.empty() && row_.generation == written->number;
  return open_.Drop(*context_->tree, *stage_, cuts_.last.stage_end,
                    all_applied ? row_.applied_size_bytes : written->cut_bytes,
                    files_.GenerationName(written->number));
}

void FileImpl::MakeVersionOfLastCut() {
  // The writer's cuts may all be of an earlier session, as before it forked.
  if (session_.cut_count() == 0 && (!cuts_.last.lacks_version || LastIsVersion())) return;
  LayerPtr top = cuts_.layers.empty() ? nullptr : cuts_.layers.back();
  Provenance provenance = session_.provenance();
  if (session_.cut_count() == 0 && top != nullptr) provenance = top->provenance;
  provenance.comment = "writer lost";
  if (top != nullptr && top->kind == BarrierKind::kCommit) return;
  if (top == nullptr || top->frozen) {
    due_work_.AddLostCut(cuts_.last.number, std::move(provenance));
    return;
  }
  top->kind = BarrierKind::kCommit;
  top->is_writers_last = true;
  top->provenance = std::move(provenance);
}

}  // namespace h5mirror::store
