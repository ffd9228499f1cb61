// What a writer calls.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kStageRotateBytes = uint64_t{64} << 20;
constexpr CutNumber kReserveMargin = 1024;

// Gives out the bytes of `pieces` from the front.
class PieceCursor {
 public:
  explicit PieceCursor(absl::Span<const std::string_view> pieces) : pieces_(pieces) {}
  void Take(uint64_t length, std::vector<std::string_view>* out) {
    while (length > 0) {
      std::string_view part = pieces_[piece_].substr(skip_, length);
      if (!part.empty()) out->push_back(part);
      skip_ += part.size();
      length -= part.size();
      if (skip_ == pieces_[piece_].size()) ++piece_, skip_ = 0;
    }
  }

 private:
  absl::Span<const std::string_view> pieces_;
  size_t piece_ = 0, skip_ = 0;
};

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

absl::Status FileImpl::CheckSession(Token token) {
  H5M_RETURN_IF_ERROR(health_.dead());
  if (token == 0 || token != session_.token || !session_.begun) {
    return absl::AbortedError(StrCat(files_.name(), ": token ", token,
                                     " is fenced: another session was "
                                     "given the lease, or this one has ended"));
  }
  return session_.error;
}

absl::StatusOr<Token> FileImpl::Acquire() {
  H5M_ASSIGN_OR_RETURN(Token token, context_->tokens.Next());
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (session_.begun) H5M_RETURN_IF_ERROR(EndLocked(SessionEnd::kLost));
  session_ = Session();
  session_.token = token;
  return token;
}

absl::Status FileImpl::Begin(Token token, SessionStart start, const Origin& origin,
                             uint32_t mode_bits) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (token == 0 || token != session_.token) {
    return absl::AbortedError(StrCat(files_.name(), ": token ", token, " is fenced"));
  }
  if (session_.begun) {
    return absl::FailedPreconditionError(StrCat(files_.name(), ": the session has begun already"));
  }
  if (open_ != nullptr) {
    return absl::UnavailableError(StrCat(files_.name(), ": a rollback is under way, try again"));
  }
  session_.start = start;
  session_.origin = origin;
  session_.mode_bits = mode_bits & 0777;
  H5M_RETURN_IF_ERROR(BeginLocked(start, mode_bits));
  session_.begun = true;
  return absl::OkStatus();
}

absl::Status FileImpl::BeginLocked(SessionStart start, uint32_t mode_bits) {
  H5M_RETURN_IF_ERROR(history_.Make());
  if (start == SessionStart::kNewGeneration || base_ == nullptr) {
    H5M_RETURN_IF_ERROR(NewGenerationLocked(mode_bits));
    open_size_ = 0;
  } else {
    generation_ = base_;
    open_size_ = last_.size_bytes;
  }
  history_.SetMark();
  open_ = NewLayer();
  return absl::OkStatus();
}

absl::Status FileImpl::NewGenerationLocked(uint32_t mode_bits) {
  auto fresh = std::make_shared<Generation>();
  fresh->number = std::max(row_.generation, base_ == nullptr ? 0 : base_->number) + 1;
  fresh->hidden = true;
  std::string name = files_.GenerationName(fresh->number);
  H5M_ASSIGN_OR_RETURN(fresh->head, context_->tree->Open(name, OpenKind::kCreateFresh, 0600));
  H5M_RETURN_IF_ERROR(
      fresh->head->SetMode(mode_bits & 0777 & ~context_->options.umask_bits, context_->group));
  history_.NoteNewName();
  generation_ = std::move(fresh);
  metadata_.Clear();
  return absl::OkStatus();
}

FileImpl::LayerPtr FileImpl::NewLayer() {
  auto layer = std::make_shared<CutLayer>(context_->budget, *context_->tree, files_.directory());
  layer->generation = generation_;
  layer->pages = Pages();
  layer->begins_generation = !generation_->has_cut;
  layer->first_segment = stage_->end().segment;
  return layer;
}

uint64_t FileImpl::DirectFloor() const {
  return RoundUp(generation_->cut_bytes, files_.page_size_bytes());
}

absl::Status FileImpl::Write(Token token, absl::Span<const Extent> extents,
                             absl::Span<const std::string_view> pieces) {
  H5M_RETURN_IF_ERROR(CheckExtents(extents, pieces));
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(CheckSession(token));
  session_.error = WriteLocked(extents, pieces);
  return session_.error;
}

absl::Status FileImpl::WriteLocked(absl::Span<const Extent> extents,
                                   absl::Span<const std::string_view> pieces) {
  for (const Extent& extent : extents) {
    H5M_RETURN_IF_ERROR(context_->CheckFileSize(files_.name(), extent.end()));
  }
  const uint64_t floor = DirectFloor();
  PieceCursor cursor(pieces);
  std::vector<Extent> staged;
  std::vector<std::string_view> staged_pieces, direct_pieces;
  Extent direct;  // direct_pieces lie here
  for (const Extent& extent : extents) {
    if (extent.length == 0) continue;
    open_size_ = std::max(open_size_, extent.end());
    open_->sent_bytes += extent.length;
    uint64_t below = extent.offset >= floor ? 0 : std::min(extent.length, floor - extent.offset);
    if (below > 0) {
      cursor.Take(below, &staged_pieces);
      if (!staged.empty() && staged.back().end() == extent.offset) {
        staged.back().length += below;
      } else {
        staged.push_back({extent.offset, below});
      }
    }
    Extent beyond{extent.offset + below, extent.length - below};
    if (beyond.length == 0) continue;
    if (direct.length > 0 && direct.end() != beyond.offset) {
      H5M_RETURN_IF_ERROR(WriteDirect(direct.offset, direct_pieces));
      direct = {};
      direct_pieces.clear();
    }
    cursor.Take(beyond.length, &direct_pieces);
    direct = direct.length == 0 ? beyond : Extent{direct.offset, direct.length + beyond.length};
  }
  if (direct.length > 0) H5M_RETURN_IF_ERROR(WriteDirect(direct.offset, direct_pieces));
  if (staged.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(StageLocation at, stage_->AppendWrite(generation_->number, last_.number,
                                                             staged, staged_pieces));
  for (const Extent& extent : staged) {
    H5M_RETURN_IF_ERROR(open_->data.Put(extent, at));
    at += extent.length;
  }
  return absl::OkStatus();
}

absl::Status FileImpl::WriteDirect(uint64_t offset, absl::Span<const std::string_view> pieces) {
  uint64_t length = 0;
  for (std::string_view piece : pieces) length += piece.size();
  // Noted first: should the write fail half-way, the session's end must cut it off.
  // A generation without a cut is direct as a whole.
  open_->data.AddDirect(generation_->has_cut ? Extent{offset, length} : Extent{0, offset + length});
  absl::Status written = generation_->head->WriteAt(offset, pieces);
  // Only now: a sync that runs beside the write takes the mark away and may miss the bytes.
  generation_->dirty = true;
  return written;
}

absl::Status FileImpl::Truncate(Token token, uint64_t size_bytes) {
  if (size_bytes > INT64_MAX) {
    return absl::InvalidArgumentError(StrCat("truncate to ", size_bytes, " bytes"));
  }
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(CheckSession(token));
  session_.error = TruncateLocked(size_bytes);
  return session_.error;
}

absl::Status FileImpl::TruncateLocked(uint64_t size_bytes) {
  H5M_RETURN_IF_ERROR(context_->CheckFileSize(files_.name(), size_bytes));
  if (size_bytes >= open_size_) {
    open_size_ = size_bytes;
    return absl::OkStatus();
  }
  const uint64_t floor = DirectFloor();
  const uint64_t direct_end = open_->data.direct().end();
  if (size_bytes < floor) {
    H5M_RETURN_IF_ERROR(stage_->AppendTruncate(generation_->number, last_.number, size_bytes));
  }
  H5M_RETURN_IF_ERROR(open_->data.Truncate(size_bytes));
  if (direct_end > std::max(size_bytes, floor)) {
    H5M_RETURN_IF_ERROR(generation_->head->Truncate(std::max(size_bytes, floor)));
    generation_->dirty = true;
  }
  open_size_ = size_bytes;
  return absl::OkStatus();
}

absl::Status FileImpl::ReadNewest(Token token, uint64_t offset, absl::Span<char> out) {
  if (offset > INT64_MAX || out.size() > INT64_MAX - offset) {
    return absl::InvalidArgumentError(StrCat(files_.name(), ": read beyond 2^63-1"));
  }
  // Held over the read: what is applied meanwhile leaves the stage.
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (token == 0 || token != session_.token || !session_.begun) {
    return absl::AbortedError(StrCat(files_.name(), ": token ", token, " is fenced"));
  }
  std::vector<LayerPtr> layers;
  for (const LayerPtr& layer : layers_) {
    if (layer->generation == generation_) layers.push_back(layer);
  }
  layers.push_back(open_);
  // What it has staged so far; a cut notes it for good.
  open_->segments = stage_->segments();
  absl::Status read = ReadThrough(layers, *generation_->head, open_size_, offset, out);
  open_->segments.clear();
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
    H5M_RETURN_IF_ERROR(CheckSession(token));
    CutWaiter waiter{0, request.barrier, request.kind, std::move(on_durable)};
    auto made = CutLocked(std::move(request), std::move(waiter));
    if (!made.ok()) {
      // While it waited for a number another session may have begun.
      if (session_.token == token) session_.error = made.status();
      return made.status();
    }
    cut = *made;
    ++session_.cut_count;
    due = NextDue();
  }
  Post(due);
  context_->TellOfCut(files_.name(), cut);
  return cut;
}

absl::Status FileImpl::AwaitFreeNumber() {
  // The mark moves with every durable cut; who is faster than 65536 cuts in between waits.
  if (next_cut_ + kReserveMargin < row_.cut_reserved) return absl::OkStatus();
  for (const LayerPtr& layer : layers_) layer->due = absl::InfinitePast();
  Post(absl::InfinitePast());
  auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return next_cut_ < row_.cut_reserved || !health_.dead().ok();
  };
  LayerPtr mine = open_;
  mutex_.Await(absl::Condition(&free));
  H5M_RETURN_IF_ERROR(health_.dead());
  if (open_ != mine) return absl::AbortedError(StrCat(files_.name(), ": the session was fenced"));
  return absl::OkStatus();
}

absl::StatusOr<CutNumber> FileImpl::CutLocked(CutRequest request, CutWaiter waiter) {
  H5M_RETURN_IF_ERROR(AwaitFreeNumber());
  H5M_RETURN_IF_ERROR(TruncateLocked(request.size_bytes));
  const CutNumber cut = next_cut_;
  LayerPtr layer = open_;
  const uint64_t sent_bytes = layer->sent_bytes;
  if (!layer->begins_generation) {
    std::vector<Extent> direct = layer->data.direct().ToVector();
    H5M_RETURN_IF_ERROR(stage_->AppendCut(generation_->number, cut, request.size_bytes, direct));
  }
  ++next_cut_;
  change_log_.AddLayer(cut, *layer, std::max(last_.size_bytes, open_size_), context_->env);
  if (request.provenance != Provenance()) session_.provenance = request.provenance;
  waiter.cut = cut;
  layer->cut = cut;
  layer->size_bytes = layer->cut_bytes = request.size_bytes;
  layer->kind = request.kind;
  layer->barrier = request.barrier;
  layer->provenance = std::move(request.provenance);
  layer->origin = session_.origin;
  layer->mode_bits = session_.mode_bits;
  layer->local = request.local;
  if (request.request_id.has_value()) layer->request_id = request.request_id;
  if (request.version_at != absl::InfiniteFuture())
    due_work_.AddFold(request.version_at, layer->provenance);
  layer->segments = stage_->segments();
  layer->stage_end = stage_->end();
  layer->time = context_->env.Now();
  layer->due = request.kind == BarrierKind::kTick ? layer->time + context_->options.durable_every
                                                  : absl::InfinitePast();
  last_.time = layer->time;
  layer->waiters.push_back(std::move(waiter));

  if (!layers_.empty() && MayMerge(*layers_.back(), *layer)) {
    H5M_RETURN_IF_ERROR(MergeInto(*layers_.back(), *layer));
  } else {
    layers_.push_back(std::move(layer));
  }
  generation_->has_cut = true;
  generation_->cut_bytes = std::max(generation_->cut_bytes, request.size_bytes);
  // Readers of the generation before go on with it as it is: while its head gets another name, a
  // look at the names may find the new one.
  if (base_ != nullptr && base_ != generation_) old_generations_[base_->number] = base_;
  base_ = generation_;
  last_.number = cut;
  last_.lacks_version =
      request.kind != BarrierKind::kCommit && request.version_at == absl::InfiniteFuture();
  last_.written_bytes += sent_bytes;
  last_.size_bytes = open_size_;
  last_.barrier = request.barrier;
  last_.stage_end = stage_->end();
  if (last_.stage_end.bytes > kStageRotateBytes) {
    stage_->Rotate();
    last_.stage_end = stage_->end();
  }
  open_ = NewLayer();
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
  if (token == 0 || token != session_.token) {
    return absl::AbortedError(StrCat(files_.name(), ": token ", token, " is fenced"));
  }
  absl::Status ended = session_.begun ? EndLocked(end) : absl::OkStatus();
  session_ = Session();
  return ended;
}

absl::Status FileImpl::EndLocked(SessionEnd end) {
  absl::Status dropped = DropOpen();
  if (!dropped.ok()) DieLocked(dropped);  // Uncut bytes are where they must not be: recover.
  if (end == SessionEnd::kLost) MakeVersionOfLastCut();
  for (const LayerPtr& layer : layers_) {
    if (!layer->frozen) layer->due = absl::InfinitePast();
  }
  session_.begun = false;
  if (layers_.empty() && !due_work_.has_lost_cut()) {
    history_.ClearMark();
    if (row_.durable_cut == 0) {
      history_.RemoveEmpty();  // An empty store leaves no trace.
    }
  }
  Post(absl::InfinitePast());
  return dropped;
}

absl::Status FileImpl::DropOpen() {
  LayerPtr open = std::move(open_);
  open_ = nullptr;
  if (open == nullptr) return absl::OkStatus();
  GenerationPtr written = std::move(generation_);
  generation_ = base_;
  if (!written->has_cut) {
    H5M_RETURN_IF_ERROR(context_->tree->Remove(files_.GenerationName(written->number)));
    return stage_->RewindTo(last_.stage_end);
  }
  H5M_RETURN_IF_ERROR(stage_->RewindTo(last_.stage_end));
  if (open->data.direct().empty()) return absl::OkStatus();
  bool all_applied = layers_.empty() && row_.generation == written->number;
  absl::Status cut =
      written->head->Truncate(all_applied ? row_.applied_size_bytes : written->cut_bytes);
  written->dirty = true;
  return cut;
}

void FileImpl::MakeVersionOfLastCut() {
  // The writer's cuts may all be of an earlier session, as before it forked.
  if (session_.cut_count == 0 && (!last_.lacks_version || LastIsVersion())) return;
  LayerPtr top = layers_.empty() ? nullptr : layers_.back();
  Provenance provenance = session_.provenance;
  if (session_.cut_count == 0 && top != nullptr) provenance = top->provenance;
  provenance.comment = "writer lost";
  if (top != nullptr && top->kind == BarrierKind::kCommit) return;
  if (top == nullptr || top->frozen) {
    due_work_.AddLostCut(last_.number, std::move(provenance));
    return;
  }
  top->kind = BarrierKind::kCommit;
  top->is_writers_last = true;
  top->provenance = std::move(provenance);
}

}  // namespace h5mirror::store
