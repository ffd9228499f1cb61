#include "tools/upload.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/io.h"
#include "tools/text.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kCommitSeq = 1;

// One session of one file.
class Uploader {
 public:
  Uploader(rpc::MirrorStream& stream, const LocalFile& file, const UploadRequest& request,
           Progress& progress)
      : stream_(stream), file_(file), request_(request), progress_(progress) {}

  absl::StatusOr<UploadResult> Run() {
    H5M_RETURN_IF_ERROR(Open());
    H5M_RETURN_IF_ERROR(SendData());
    // What a writer without HDF5's locks may have done shows here.
    H5M_RETURN_IF_ERROR(file_.CheckUnchanged());
    H5M_RETURN_IF_ERROR(WriteRecord(RecordState::kBehind));
    H5M_RETURN_IF_ERROR(Commit());
    H5M_RETURN_IF_ERROR(stream_.Finish());
    H5M_RETURN_IF_ERROR(WriteRecord(RecordState::kClean));
    return result_;
  }

 private:
  absl::Status Open() {
    v1::MirrorFileRequest message;
    v1::OpenSession& open = *message.mutable_open();
    open.mutable_protocol()->set_oldest(rpc::kProtocolOldest);
    open.mutable_protocol()->set_newest(rpc::kProtocolNewest);
    open.set_name(request_.name);
    if (request_.file_id != Bytes16{}) open.set_file_id(ToByteString(request_.file_id));
    open.set_session_id(ToByteString(session_id_));
    open.set_intent(request_.intent);
    H5M_ASSIGN_OR_RETURN(*open.mutable_origin(), LocalOrigin(file_.path()));
    *open.mutable_writer() = LocalWriter();
    open.set_size_bytes(file_.stat().size_bytes);
    open.set_mode_bits(file_.mode_bits());
    *open.mutable_client_time() = ToProto(absl::Now());
    H5M_RETURN_IF_ERROR(stream_.Send(message));
    H5M_ASSIGN_OR_RETURN(const v1::MirrorFileResponse answer, stream_.Receive());
    if (!answer.has_opened()) {
      return absl::InternalError(
          StrCat("push ", file_.path().string(), ": the server's first answer is not `opened`"));
    }
    opened_ = answer.opened();
    return CheckRelation();
  }

  absl::Status CheckRelation() {
    const std::string what = StrCat("push ", file_.path().string(), " to ", request_.name);
    switch (opened_.relation()) {
      case v1::RELATION_NEW: {
        H5M_ASSIGN_OR_RETURN(file_id_, FromByteString(opened_.file_id()));
        return absl::OkStatus();
      }
      case v1::RELATION_BUSY:
        return absl::FailedPreconditionError(StrCat(what, ": another writer holds the lease (",
                                                    opened_.state(),
                                                    "); try again when it is done"));
      default:
        return absl::FailedPreconditionError(
            StrCat(what, ": the server has another file there (", opened_.state(),
                   "); compare with h5mirror adopt, or replace it with h5mirror push --replace"));
    }
  }

  absl::Status SendData() {
    const uint64_t size = file_.size_bytes();
    uint64_t next = 0;
    while (std::optional<Extent> data = NextData(file_.fd(), next, size)) {
      // Frames start where data starts; a hole costs a frame, never bytes.
      for (next = data->offset; next < data->end();) {
        H5M_ASSIGN_OR_RETURN(const uint64_t sent, SendFrame(next, data->end() - next));
        next += sent;
        progress_.Update(next);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> SendFrame(uint64_t offset, uint64_t bytes_left) {
    const uint64_t frame_max =
        opened_.max_frame_bytes() > 0 ? opened_.max_frame_bytes() : rpc::kMaxFrameBytes;
    const uint64_t wanted = std::min({bytes_left, frame_max, uint64_t{rpc::kMaxFrameBytes}});
    grpc_slice raw = grpc_slice_malloc(wanted);
    grpc::Slice slice(raw, grpc::Slice::STEAL_REF);
    char* bytes = reinterpret_cast<char*>(const_cast<uint8_t*>(slice.begin()));
    H5M_ASSIGN_OR_RETURN(const size_t got,
                         PreadUpTo(file_.fd(), offset, bytes, wanted, file_.path().string()));
    if (got < wanted) return ShortRead();
    const uint32_t crc = Crc32c(std::string_view(bytes, wanted));
    const Extent extent{offset, wanted};
    H5M_RETURN_IF_ERROR(
        stream_.SendWrites(absl::MakeConstSpan(&extent, 1), crc, absl::MakeConstSpan(&slice, 1)));
    result_.sent_bytes += wanted;
    return wanted;
  }

  absl::Status ShortRead() const {
    return absl::AbortedError(
        StrCat("read ", file_.path().string(),
               ": it became shorter while it was read; close its writer and try again"));
  }

  absl::Status Commit() {
    v1::MirrorFileRequest message;
    v1::Barrier& barrier = *message.mutable_barrier();
    barrier.set_seq(kCommitSeq);
    barrier.set_kind(v1::BARRIER_KIND_COMMIT);
    barrier.set_size_bytes(file_.size_bytes());
    *barrier.mutable_client_time() = ToProto(absl::Now());
    barrier.set_comment(request_.comment);
    *barrier.mutable_local() = ToProto(file_.stat());
    H5M_RETURN_IF_ERROR(stream_.Send(message));
    while (true) {
      H5M_ASSIGN_OR_RETURN(const v1::MirrorFileResponse answer, stream_.Receive());
      if (!answer.has_cut_durable() || answer.cut_durable().seq() < kCommitSeq) continue;
      result_.cut = answer.cut_durable().cut();
      result_.version = answer.cut_durable().version();
      return absl::OkStatus();
    }
  }

  absl::Status WriteRecord(RecordState state) {
    LocalRecord record;
    record.state = state;
    record.file_id = file_id_;
    record.server = request_.server;
    record.name = request_.name;
    record.cut = result_.cut;
    record.version = result_.version;
    record.stat = file_.stat();
    record.since = absl::Now();
    if (state == RecordState::kBehind) {
      record.cut = opened_.durable_cut();
      record.pending_session_id = session_id_;
      record.pending_seq = kCommitSeq;
      record.detail = "h5mirror push was not answered";
    }
    return WriteLocalRecord(file_.path(), record);
  }

  rpc::MirrorStream& stream_;
  const LocalFile& file_;
  const UploadRequest& request_;
  Progress& progress_;
  const Bytes16 session_id_ = RandomBytes16();
  v1::SessionOpened opened_;
  Bytes16 file_id_{};
  UploadResult result_;
};

}  // namespace

absl::StatusOr<UploadResult> Upload(rpc::Client& client, const LocalFile& file,
                                    const UploadRequest& request, Progress& progress) {
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<rpc::MirrorStream> stream, client.OpenMirrorStream());
  return Uploader(*stream, file, request, progress).Run();
}

}  // namespace h5mirror::tools
