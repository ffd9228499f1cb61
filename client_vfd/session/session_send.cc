// A session's frames: taken from the queue, read from the local file, written to the stream. All of
// it runs on the sender thread.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"
#include "rpc/channel.h"
#include "rpc/frame_codec.h"

namespace h5mirror::vfd {
namespace {

constexpr size_t kFrameExtentsMax = 8192;
// Smaller open cuts wait for more, or for their barrier.
constexpr uint64_t kOpenBytesMin = 256 << 10;

v1::BarrierKind KindOf(CutKind kind) {
  switch (kind) {
    case CutKind::kTick:
      return v1::BARRIER_KIND_TICK;
    case CutKind::kSync:
      return v1::BARRIER_KIND_SYNC;
    case CutKind::kCommit:
      break;
  }
  return v1::BARRIER_KIND_COMMIT;
}

void FillGroup(const GroupCut& cut, v1::GroupCut* out) {
  out->set_group_id(ToByteString(cut.id));
  out->set_number(cut.number);
  out->set_whole_number(cut.whole_number);
  for (const std::string& member : cut.members) out->add_member(member);
}

}  // namespace

void Session::Pump() {
  bool start = false;
  {
    absl::MutexLock lock(&mutex_);
    FollowPredecessor();
    if (link_.TakeCancel() && outbox_.has_stream()) {
      Stream* const stream = ForgetStream();
      stream->Abandon();
      stream->Cancel();
      if (life_.released()) host_.WakeSuccessors(*this);
    }
    if (life_.done() && outbox_.is_writable()) return EndStream();
    start = !outbox_.has_stream() && WantsStream(host_.Now());
  }
  if (start) StartStream();
  SendNext();
}

void Session::OnWritable() {
  {
    absl::MutexLock lock(&mutex_);
    outbox_.OnWritable();
    // A keep-alive message fits into any buffer. So sending one does not show that the server is
    // alive.
    if (outbox_.sending() != Outbox::Kind::kKeepAlive) {
      Progress();
      stream_clock_.OnTaken(program_clock_.progress_time());
    }
    if (life_.done() && outbox_.has_stream()) return EndStream();
  }
  SendNext();
}

void Session::EndStream() {
  if (!closing_.is_unfinished()) return outbox_.End();
  closing_.SetUnfinished(false);
  v1::MirrorFileRequest request;
  request.mutable_keep_alive()->mutable_mirror()->set_state(v1::MIRROR_STATE_DEGRADED);
  outbox_.End(rpc::EncodeRequest(request));
}

Stream* Session::ForgetStream() {
  life_.SetStreaming(false);
  return outbox_.Forget();
}

void Session::SendNext() {
  while (outbox_.has_stream()) {
    if (outbox_.WriteNext()) {
      absl::MutexLock lock(&mutex_);
      stream_clock_.OnSent(host_.Now());
    }
    if (!outbox_.is_full()) {
      if (!Prepare()) return;
    } else if (!outbox_.is_writable()) {
      return;
    }
  }
}

bool Session::Prepare() {
  uint64_t bytes_max = 0;
  {
    absl::MutexLock lock(&mutex_);
    bytes_max = pacing_.Allowed(stream_clock_.frame_bytes(), host_.Now());
  }
  if (bytes_max == 0) return false;
  char* buffer = host_.pool().Take();
  if (buffer == nullptr) return false;
  Work work;
  {
    absl::MutexLock lock(&mutex_);
    if (link_.may_send() && !life_.done() && !standing_.is_diverged()) {
      work = queue_.Next(bytes_max, kFrameExtentsMax, kOpenBytesMin);
    }
    if (std::holds_alternative<std::monostate>(work)) idle_ = true;
    window_.Hold(queue_.saved_bytes());
    if (const auto* barrier = std::get_if<SendBarrier>(&work)) {
      const bool last = tickets_.IsFinal(barrier->end.ticket);
      tickets_.Sent(barrier->end.ticket, barrier->seq);
      if (!NoteBarrier()) {
        tickets_.NotSent(barrier->end.ticket);
        host_.pool().Return(buffer);
        CutOffHere("the file was opened again");
        return false;
      }
      if (barrier->end.group) group_.Sent(barrier->seq, barrier->end.group->number);
      outbox_.Push(EncodeBarrier(*barrier), last ? Outbox::Kind::kLast : Outbox::Kind::kData);
    }
  }
  if (const auto* writes = std::get_if<SendWrites>(&work)) {
    absl::Status status;
    grpc::ByteBuffer message = EncodePieces(*writes, buffer, &status);
    absl::MutexLock lock(&mutex_);
    queue_.DoneReading();
    for (const Piece& piece : writes->pieces) progress_.Sent(piece.extent.length);
    if (!status.ok()) {
      CutOffHere(std::string(status.message()));
      return false;
    }
    outbox_.Push(std::move(message), Outbox::Kind::kData);
    return true;
  }
  host_.pool().Return(buffer);
  if (const auto* truncate = std::get_if<SendTruncate>(&work)) {
    v1::MirrorFileRequest request;
    request.mutable_truncate()->set_size_bytes(truncate->size_bytes);
    outbox_.Push(rpc::EncodeRequest(request), Outbox::Kind::kData);
  }
  return !std::holds_alternative<std::monostate>(work);
}

grpc::ByteBuffer Session::EncodePieces(const SendWrites& work, char* buffer, absl::Status* status) {
  std::vector<Extent> extents;
  extents.reserve(work.pieces.size());
  size_t used = 0;
  for (const Piece& piece : work.pieces) {
    if (!piece.saved.empty()) {
      std::memcpy(buffer + used, piece.saved.data(), piece.saved.size());
    } else if (absl::Status read = file_->Read(piece.extent, buffer + used); !read.ok()) {
      *status = std::move(read);
      host_.pool().Return(buffer);
      return {};
    }
    used += piece.extent.length;
    extents.push_back(piece.extent);
  }
  pacing_.Sent(used);
  std::optional<uint32_t> crc32c;
  if (config_.checksum) crc32c = Crc32c(std::string_view(buffer, used));
  const grpc::Slice data = host_.pool().Lend(buffer, used);
  return rpc::EncodeWrites(extents, crc32c, absl::MakeConstSpan(&data, 1));
}

grpc::ByteBuffer Session::EncodeBarrier(const SendBarrier& barrier) {
  v1::MirrorFileRequest request;
  v1::Barrier& message = *request.mutable_barrier();
  message.set_seq(barrier.seq);
  message.set_kind(KindOf(barrier.end.kind));
  message.set_size_bytes(barrier.end.size_bytes);
  FillTime(barrier.end.time, message.mutable_client_time());
  message.set_comment(barrier.end.comment);
  if (barrier.end.local && !config_.remote) {
    FillLocalStat(*barrier.end.local, message.mutable_local());
  } else if (barrier.end.local) {  // That it is closed, and no file that anybody could find.
    message.mutable_local()->set_size_bytes(static_cast<int64_t>(barrier.end.size_bytes));
  }
  message.set_part_bytes(parts_.TakeForBarrier());
  if (barrier.end.group) FillGroup(*barrier.end.group, message.mutable_group());
  for (const PageRun& run : metadata_.TakeNews()) {
    message.add_metadata_page(run.page);
    message.add_metadata_page_count(run.page_count);
  }
  return rpc::EncodeRequest(request);
}

}  // namespace h5mirror::vfd
