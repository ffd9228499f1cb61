// A writer's session: barriers, the cuts that they make, and the answers when those are durable.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "server/history/history_pruner.h"
#include "server/mirror/check_open.h"
#include "server/mirror/metadata_pages.h"
#include "server/mirror/session.h"
#include "server/state/convert.h"

namespace h5mirror::server {

absl::Status Session::CheckBarrier(const v1::Barrier& barrier) const {
  if (barrier.seq() <= last_seq_) {
    return absl::InvalidArgumentError(
        StrCat("barrier.seq ", barrier.seq(), " does not follow ", last_seq_));
  }
  if (barrier.seq() > kBarrierSeqMax) {
    return absl::InvalidArgumentError(StrCat("barrier.seq ", barrier.seq(), " is beyond 2^63-1"));
  }
  if (barrier.size_bytes() > kFileSizeMax) {
    return absl::InvalidArgumentError(
        StrCat("barrier.size_bytes ", barrier.size_bytes(), " is beyond 2^63-1"));
  }
  if (barrier.part_bytes() > part_bytes_) {
    return absl::AbortedError(StrCat("barrier.part_bytes ", barrier.part_bytes(),
                                     ": of its parts only ", part_bytes_, " bytes came"));
  }
  H5M_RETURN_IF_ERROR(CheckMetadataPages(barrier));
  if (barrier.has_group()) H5M_RETURN_IF_ERROR(CheckGroup(barrier.group()));
  return CheckComment(barrier.comment());
}

absl::StatusOr<store::CutRequest> Session::RequestOf(const v1::Barrier& barrier) const {
  store::CutRequest request;
  H5M_ASSIGN_OR_RETURN(request.kind, FromProto(barrier.kind()));
  request.size_bytes = barrier.size_bytes();
  request.barrier = {session_id_, barrier.seq()};
  request.provenance =
      MakeProvenance(writer_, principal_.name, barrier.comment(), FromProto(barrier.client_time()));
  request.local = FromProto(barrier.local());
  if (barrier.has_group()) request.group = FromProto(barrier.group());
  return request;
}

absl::Status Session::Cut(const v1::Barrier& barrier) {
  const absl::MutexLock work(&work_mutex_);
  return CutNow(barrier);
}

absl::Status Session::CutNow(const v1::Barrier& barrier) {
  H5M_RETURN_IF_ERROR(CheckBarrier(barrier));
  H5M_ASSIGN_OR_RETURN(store::CutRequest request, RequestOf(barrier));
  last_seq_ = barrier.seq();
  part_bytes_ = 0;
  space_.Truncate(static_cast<uint64_t>(barrier.size_bytes()));
  NoteMetadataPages(barrier,
                    file_->metadata());  // Before the cut: its followers may want them.
  const PendingCommits asked = environment_.commits.TakeAll(name_);
  store::BarrierKind kind;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = environment_.clock.Now();
    if (asked.empty()) {
      schedule_.Apply(now, barrier.has_local(), request);
    } else {
      schedule_.Commits(now);
      request.kind = store::BarrierKind::kCommit;
      request.request_id = asked.front()->request_id;
      request.provenance.comment = JoinComments(barrier.comment(), principal_.name, asked);
    }
    kind = request.kind;
    const bool folded =
        barrier.kind() == v1::BARRIER_KIND_COMMIT && kind != store::BarrierKind::kCommit;
    barriers_.push_back(
        {barrier.seq(), kind, now, environment_.clock.Monotonic(), false, folded, {}});
  }
  auto cut = file_->Cut(token_, std::move(request),
                        [self = shared_from_this(), seq = barrier.seq(),
                         asked](absl::StatusOr<store::DurableCut> durable) {
                          for (const auto& commit : asked) commit->Done(durable);
                          self->OnDurable(seq, std::move(durable));
                        });
  absl::MutexLock lock(&mutex_);
  if (!cut.ok()) {
    for (const auto& commit : asked) commit->Done(cut.status());
    // The barrier never became a cut. A late callback finds no entry.
    if (!barriers_.empty() && barriers_.back().seq == barrier.seq()) barriers_.pop_back();
    FinishIfDone();  // An end that came meanwhile waits for barriers, and this was one.
    return cut.status();
  }
  ++cut_count_;
  closed_cleanly_ = barrier.has_local();
  environment_.metrics.CutMade(kind);
  v1::MirrorFileResponse response;
  response.mutable_cut_visible()->set_seq(barrier.seq());
  response.mutable_cut_visible()->set_cut(*cut);
  Send(std::move(response));
  // Not there any more where an earlier cut could not become durable.
  if (!barriers_.empty() && barriers_.back().seq == barrier.seq()) barriers_.back().visible = true;
  AnswerDurable();  // It may have become durable before this thread came back.
  return absl::OkStatus();
}

void Session::OnDurable(uint64_t seq, absl::StatusOr<store::DurableCut> durable) {
  absl::MutexLock lock(&mutex_);
  for (OpenBarrier& barrier : barriers_) {
    if (barrier.seq == seq) {
      barrier.durable = std::move(durable);
      break;
    }
  }
  AnswerDurable();
}

void Session::AnswerDurable() {
  while (!barriers_.empty() && barriers_.front().visible && barriers_.front().durable.has_value()) {
    const OpenBarrier barrier = std::move(barriers_.front());
    barriers_.pop_front();
    const absl::StatusOr<store::DurableCut>& durable = *barrier.durable;
    if (!durable.ok()) {
      // Called by the store, so the store is not called back here: the stream ends with this
      // status, and that ends the session.
      final_status_ = durable.status();
      barriers_.clear();
      if (phase_ == Phase::kWriting && output_ != nullptr) output_->Finish(final_status_);
      break;
    }
    environment_.metrics.CutDurable(barrier.kind, environment_.clock.Monotonic() - barrier.since);
    if (environment_.pruner != nullptr) environment_.pruner->Grew(name_);
    if (resumed_seq_ != 0) resumed_seq_ = 0;  // Covered by this one.
    v1::MirrorFileResponse response;
    v1::CutDurable& answer = *response.mutable_cut_durable();
    if (durable->version > 0 && !durable->unchanged) {
      schedule_.Newest(durable->version, barrier.made);
    } else if (durable->unchanged) {
      schedule_.Unchanged();
    }
    answer.set_seq(barrier.seq);
    answer.set_cut(durable->cut);
    // A close that was folded has the newest version of then.
    answer.set_version(barrier.folded ? schedule_.newest() : durable->version);
    answer.set_unchanged(durable->unchanged);
    Send(std::move(response));
  }
  FinishIfDone();
}

}  // namespace h5mirror::server
