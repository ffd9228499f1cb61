#include "sync/push_session.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "cli/process/io.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kCommitSeq = 1;
// Of one frame; the data of scattered pages fills it before.
constexpr size_t kExtentsMax = 4096;

}  // namespace

std::string PushSession::What() const {
  return StrCat(request_.verb, " ", file_.path().string(), " to ", request_.name);
}

absl::Status PushSession::Open() {
  H5M_ASSIGN_OR_RETURN(stream_, client_.OpenMirrorStream());
  v1::MirrorFileRequest message;
  v1::OpenSession& open = *message.mutable_open();
  open.mutable_protocol()->set_oldest(rpc::kProtocolOldest);
  open.mutable_protocol()->set_newest(rpc::kProtocolNewest);
  open.set_name(request_.name);
  if (request_.file_id != Bytes16{}) open.set_file_id(ToByteString(request_.file_id));
  open.set_session_id(ToByteString(session_id_));
  open.set_stream(1);
  open.set_intent(request_.intent);
  open.set_base_cut(request_.base_cut);
  if (request_.intent == v1::INTENT_RESUME) {
    open.set_base_cut_newest(request_.base_cut_newest);
    open.set_predecessor_session_id(ToByteString(request_.predecessor));
  }
  H5M_ASSIGN_OR_RETURN(*open.mutable_origin(), LocalOrigin(file_.path()));
  *open.mutable_writer() = LocalWriter();
  open.mutable_writer()->set_program(request_.program);
  open.set_size_bytes(file_.stat().size_bytes);
  open.set_mode_bits(file_.mode_bits());
  *open.mutable_client_time() = ToProto(absl::Now());
  H5M_RETURN_IF_ERROR(stream_->Send(message));
  H5M_ASSIGN_OR_RETURN(const v1::MirrorFileResponse answer, stream_->Receive());
  if (!answer.has_opened()) {
    return absl::InternalError(StrCat(What(), ": the server's first answer is not `opened`"));
  }
  opened_ = answer.opened();
  return CheckRelation();
}

absl::Status PushSession::CheckRelation() {
  if (opened_.relation() == v1::RELATION_BUSY) {
    return absl::FailedPreconditionError(StrCat(What(), ": another writer holds the lease (",
                                                opened_.state(), "); try again when it is done"));
  }
  if (opened_.relation() == (sends_difference() ? v1::RELATION_MATCH : v1::RELATION_NEW)) {
    H5M_ASSIGN_OR_RETURN(file_id_, FromByteString(opened_.file_id()));
    return absl::OkStatus();
  }
  if (sends_difference()) {
    return absl::AbortedError(StrCat(What(),
                                     ": the server's file has changed since it was compared (",
                                     opened_.state(), "); nothing was changed, try again"));
  }
  return absl::FailedPreconditionError(
      StrCat(What(), ": the server has another file there (", opened_.state(),
             "); compare with h5mirror adopt, or replace it with h5mirror push --replace"));
}

absl::Status PushSession::Truncate(uint64_t size_bytes) {
  H5M_RETURN_IF_ERROR(Flush());
  truncate_ = std::min(size_bytes, truncate_.value_or(size_bytes));
  v1::MirrorFileRequest message;
  message.mutable_truncate()->set_size_bytes(size_bytes);
  return stream_->Send(message);
}

absl::Status PushSession::KeepAlive() {
  v1::MirrorFileRequest message;
  message.mutable_keep_alive();
  return stream_->Send(message);
}

absl::Status PushSession::Send(Extent extent) {
  const uint64_t frame_max = std::min<uint64_t>(
      opened_.max_frame_bytes() > 0 ? opened_.max_frame_bytes() : rpc::kMaxFrameBytes,
      rpc::kMaxFrameBytes);
  const uint64_t end = std::min(extent.end(), file_.size_bytes());
  if (end > extent.offset) sent_.Add({extent.offset, end - extent.offset});
  for (uint64_t offset = extent.offset; offset < end;) {
    const uint64_t length = std::min(end - offset, frame_max - pending_bytes_);
    pending_.push_back({offset, length});
    pending_bytes_ += length;
    offset += length;
    if (pending_bytes_ == frame_max || pending_.size() == kExtentsMax) {
      H5M_RETURN_IF_ERROR(Flush());
    }
  }
  return absl::OkStatus();
}

absl::Status PushSession::Flush() {
  if (pending_.empty()) return absl::OkStatus();
  grpc::Slice slice(grpc_slice_malloc(pending_bytes_), grpc::Slice::STEAL_REF);
  char* const bytes = reinterpret_cast<char*>(const_cast<uint8_t*>(slice.begin()));
  char* at = bytes;
  for (const Extent extent : pending_) {
    H5M_ASSIGN_OR_RETURN(const size_t got, PreadUpTo(file_.fd(), extent.offset, at, extent.length,
                                                     file_.path().string()));
    if (got < extent.length) {
      return absl::AbortedError(
          StrCat("read ", file_.path().string(),
                 ": it became shorter while it was read; close its writer and try again"));
    }
    at += extent.length;
  }
  const uint32_t crc = Crc32c(std::string_view(bytes, pending_bytes_));
  H5M_RETURN_IF_ERROR(stream_->SendWrites(pending_, crc, absl::MakeConstSpan(&slice, 1)));
  result_.sent_bytes += pending_bytes_;
  pending_.clear();
  pending_bytes_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<PushResult> PushSession::Commit() {
  H5M_RETURN_IF_ERROR(Flush());
  // Finds changes of a writer that does not use HDF5's locks.
  H5M_RETURN_IF_ERROR(file_.CheckUnchanged());
  H5M_RETURN_IF_ERROR(WriteBehind());
  H5M_RETURN_IF_ERROR(SendBarrier());
  H5M_RETURN_IF_ERROR(stream_->Finish());
  H5M_RETURN_IF_ERROR(WriteClean());
  return result_;
}

absl::Status PushSession::SendBarrier() {
  v1::MirrorFileRequest message;
  v1::Barrier& barrier = *message.mutable_barrier();
  barrier.set_seq(kCommitSeq);
  barrier.set_kind(v1::BARRIER_KIND_COMMIT);
  barrier.set_size_bytes(file_.size_bytes());
  *barrier.mutable_client_time() = ToProto(absl::Now());
  barrier.set_comment(request_.comment);
  *barrier.mutable_local() = ToProto(file_.stat());
  if (const std::optional<RecordGroup> group = GroupOfClose()) {
    barrier.mutable_group()->set_group_id(ToByteString(group->id));
    barrier.mutable_group()->set_number(group->number);
    for (const std::string& member : group->members) barrier.mutable_group()->add_member(member);
  }
  H5M_RETURN_IF_ERROR(stream_->Send(message));
  while (true) {
    H5M_ASSIGN_OR_RETURN(const v1::MirrorFileResponse answer, stream_->Receive());
    if (!answer.has_cut_durable() || answer.cut_durable().seq() < kCommitSeq) continue;
    result_.cut = answer.cut_durable().cut();
    result_.version = answer.cut_durable().version();
    return absl::OkStatus();
  }
}

std::optional<DirtyMap> PushSession::MakeDirtyMap() const {
  DirtyMap map;
  if (sends_difference()) {
    map.base_cut = request_.base_cut;
    map.cut_newest = std::max(request_.base_cut, opened_.last_cut());
    map.truncate = truncate_;
    map.extents.AddAll(sent_);
  } else {
    // The new generation is all of the file; without it the server lacks what it has lacked before.
    const absl::StatusOr<LocalRecord> record = ReadLocalRecord(place());
    if (!record.ok() || record->name != request_.name) return std::nullopt;
    const std::optional<DirtyMap> before = FindDirtyMap(place(), *record, file_.stat());
    const bool has_base = before && before->base_cut > 0 && before->barrier_seq == 0;
    if (!has_base || before->file_id != file_id_) return std::nullopt;
    map = *before;
    map.cut_newest = std::max(map.base_cut, map.cut_newest);
  }
  // It is claimed as this session's, so that the server knows its commit by that.
  map.claim = DirtyMap::Claim::kResume;
  map.id = RandomBytes16();
  map.file_id = file_id_;
  map.session_id = session_id_;
  map.stat = file_.stat();
  return map;
}

std::optional<RecordGroup> PushSession::GroupOfClose() const {
  const absl::StatusOr<LocalRecord> record = ReadLocalRecord(place());
  const bool is_as_closed =
      record.ok() && record->name == request_.name && record->stat == file_.stat();
  return is_as_closed ? record->group : std::nullopt;
}

LocalRecord PushSession::MakeRecord() const {
  LocalRecord record;
  record.group = GroupOfClose();  // Also of the record that this one writes first.
  record.file_id = file_id_;
  record.server = request_.server;
  record.name = request_.name;
  record.stat = file_.stat();
  record.since = absl::Now();
  return record;
}

absl::Status PushSession::WriteBehind() {
  LocalRecord record = MakeRecord();
  record.state = RecordState::kBehind;
  record.cut = sends_difference() ? request_.base_cut : opened_.durable_cut();
  record.pending_session_id = session_id_;
  record.pending_seq = kCommitSeq;
  record.detail = StrCat(request_.program == request_.verb ? "" : "h5mirror ", request_.verb,
                         " was not answered");
  if (!request_.diverged_detail.empty()) {
    record.state = RecordState::kDiverged;
    record.detail = request_.diverged_detail;
  } else if (std::optional<DirtyMap> map = MakeDirtyMap()) {
    // Killed before the record is written, the one that there is names this map, which holds for
    // it, too.
    const absl::StatusOr<LocalRecord> before = ReadLocalRecord(place());
    const bool names_one = before.ok() && before->state == RecordState::kBehind &&
                           before->dirty_map_id != Bytes16{} && before->stat == file_.stat();
    if (names_one && before->file_id == file_id_) map->id = before->dirty_map_id;
    // The directory of a file that had no record yet is made with that, and there is no map then.
    const absl::Status written = WriteDirtyMap(place(), *map);
    if (written.ok()) record.dirty_map_id = map->id;
  }
  return WriteLocalRecord(place(), record);
}

absl::Status PushSession::WriteClean() {
  LocalRecord record = MakeRecord();
  record.state = RecordState::kClean;
  record.cut = result_.cut;
  record.version = result_.version;
  if (!request_.diverged_detail.empty()) {
    record.state = RecordState::kDiverged;
    record.detail = request_.diverged_detail;
  }
  H5M_RETURN_IF_ERROR(WriteLocalRecord(place(), record));
  RemoveDirtyMap(place());
  return absl::OkStatus();
}

}  // namespace h5mirror::tools
