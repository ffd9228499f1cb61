// ReadSnapshot and CloseSnapshot. No thread waits for a reader who takes his time, and a call that
// finds all workers busy waits for its turn: readers come by the hundred when a cut is made.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/crc32c.h"
#include "base/extent.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/status.h"
#include "server/convert.h"
#include "server/raw_message.h"
#include "server/send_metadata.h"
#include "server/snapshot_source.h"

namespace h5mirror::server {
namespace {

// Bytes of one message, whole metadata blocks. Each call has two at most, one on its way for as
// long as its reader likes and the next one: with more calls than the limit's bytes have room for
// they become smaller, and with more calls than the limit readers are asked to come again.
constexpr uint64_t kPartBytesMin = kMetadataBlockBytes;
constexpr uint64_t kPartBytesMax = 8 * kMetadataBlockBytes;
// A read that is in memory is over before, so that it does not change threads.
constexpr absl::Duration kTurn = absl::Milliseconds(5);

}  // namespace

// One call. A worker reads the next message while one is on its way; gRPC destroys it when it has
// ended.
class SnapshotsService::ReadCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  ReadCall(SnapshotsService& service, const grpc::CallbackServerContext& context,
           v1::ReadSnapshotRequest request)
      : service_(service),
        context_(context),
        request_(std::move(request)),
        started_(service.environment_.clock.Monotonic()),
        is_one_too_many_(service.reading_calls_++ >= service.read_limits_.calls) {}
  ~ReadCall() override { --service_.reading_calls_; }

  bool is_one_too_many() const { return is_one_too_many_; }
  void Begin() { ReadSoon(); }
  void Refuse(const absl::Status& status) { Finish(rpc::ToGrpc(Ended(status))); }

  void OnWriteDone(bool ok) override {
    if (!ok) is_cancelled_ = true;
    Step step;
    {
      absl::MutexLock lock(&mutex_);
      is_writing_ = false;
      if (!next_) return;  // Who reads it sends it.
      step = std::move(*next_);
      next_.reset();
      is_writing_ = true;
    }
    if (!Send(std::move(step))) return;
    ReadSoon();
  }
  void OnCancel() override { is_cancelled_ = true; }
  void OnDone() override { delete this; }

 private:
  using Part = v1::ReadSnapshotResponse;

  // A message, the end, or both.
  struct Step {
    std::optional<grpc::ByteBuffer> message = std::nullopt;
    std::optional<absl::Status> end = std::nullopt;
  };

  void ReadSoon() {
    service_.reads_.Schedule([this] { ReadOn(); });
  }

  // Until a message is on its way and the next one is there, or the turn is over and somebody waits
  // for his: who reads a whole file keeps no worker from the others.
  void ReadOn() {
    const absl::Duration turn_end = service_.environment_.clock.Monotonic() + kTurn;
    const auto is_over = [&] { return service_.environment_.clock.Monotonic() >= turn_end; };
    do {
      Step step = Read();
      {
        absl::MutexLock lock(&mutex_);
        if (is_writing_) {
          next_ = std::move(step);
          return;
        }
        is_writing_ = true;
      }
      if (!Send(std::move(step))) return;
    } while (!is_over() || !service_.reads_.HasWaiting());
    ReadSoon();
  }

  // Of who has set `is_writing_`. False: the call has ended, and may be gone.
  bool Send(Step step) {
    if (step.message) message_ = *std::move(step.message);
    if (!step.end) {
      StartWrite(&message_);
      return true;
    }
    const grpc::Status status = rpc::ToGrpc(*step.end);
    if (step.message) {
      StartWriteAndFinish(&message_, grpc::WriteOptions(), status);
    } else {
      Finish(status);
    }
    return false;
  }

  Step Read() {
    // Who has waited too long has gone.
    if (is_cancelled_) return {.end = Ended(absl::CancelledError("the caller has gone"))};
    static thread_local Part part;  // Its memory serves many messages.
    part.Clear();
    const absl::StatusOr<bool> more = has_opened_ ? Next(part) : Open(part);
    if (!more.ok() || !*more) return {.end = Ended(more.status())};
    Step step{.message = EncodeMessage(part)};
    if (at_ >= range_.end() && !request_.is_metadata()) step.end = Ended(absl::OkStatus());
    return step;
  }

  // The first message.
  absl::StatusOr<bool> Open(Part& part) {
    const absl::Time open_time = service_.environment_.clock.Now();
    H5M_ASSIGN_OR_RETURN(source_, service_.OpenSource(request_));
    has_opened_ = true;
    *source_->proto().mutable_open_time() = ToProto(open_time);
    *part.mutable_snapshot() = source_->proto();
    const uint64_t size = source_->size_bytes();
    const uint64_t wanted = request_.length_bytes() == 0 ? size : request_.length_bytes();
    range_.offset = std::min(request_.offset(), size);
    range_.length = std::min(wanted, size - range_.offset);
    at_ = range_.offset;
    return true;
  }

  // Each one after it; false: there are no more.
  absl::StatusOr<bool> Next(Part& part) {
    if (at_ < range_.end() && at_ >= data_end_) H5M_RETURN_IF_ERROR(FindData());
    if (at_ >= range_.end()) return NextAhead(part);
    std::string& bytes = *part.mutable_data();
    bytes.resize(std::min(PartBytes(), data_end_ - at_));
    H5M_RETURN_IF_ERROR(source_->Read(at_, absl::MakeSpan(bytes)));
    part.set_offset(at_);
    part.set_data_crc32c(Crc32c(bytes));
    at_ += bytes.size();
    return true;
  }

  // Goes on to what does not read as zeros anyway.
  absl::Status FindData() {
    H5M_ASSIGN_OR_RETURN(const Extent data, source_->NextData(at_));
    const bool is_over = data.length == 0 || data.offset >= range_.end();
    at_ = is_over ? range_.end() : std::max(at_, data.offset);
    data_end_ = std::min(data.end(), range_.end());
    return absl::OkStatus();
  }

  // What is to follow the range, where the request asks for it.
  bool NextAhead(Part& part) {
    if (!request_.is_metadata()) return false;
    if (!ahead_) {
      auto file = service_.OpenFile(request_.name());
      if (!file.ok()) return false;  // The range was sent.
      file_ = *std::move(file);
      ahead_.emplace(*file_, source_->size_bytes(), request_, range_);
    }
    return ahead_->Next([this](absl::Span<const Extent> ranges,
                               absl::Span<char> out) { return source_->ReadRanges(ranges, out); },
                        PartBytes(), part);
  }

  uint64_t PartBytes() const {
    const uint64_t share = service_.read_limits_.bytes / (2 * service_.reading_calls_);
    return std::clamp(share - share % kMetadataBlockBytes, kPartBytesMin, kPartBytesMax);
  }

  // What is left to do when all was read; the last message may still be on its way. To let go of a
  // cut may take a while: not in a thread of gRPC's.
  absl::Status Ended(const absl::Status& status) {
    source_.reset();
    file_.reset();
    NoteCallDone(service_.environment_, context_, "ReadSnapshot", started_, status);
    return status;
  }

  SnapshotsService& service_;
  const grpc::CallbackServerContext& context_;
  const v1::ReadSnapshotRequest request_;
  const absl::Duration started_;
  const bool is_one_too_many_;
  std::atomic<bool> is_cancelled_ = false;

  // Of who reads.
  bool has_opened_ = false;
  std::unique_ptr<Source> source_;  // null: not opened yet, or ended
  Extent range_;                    // wanted, within the cut
  uint64_t at_ = 0;                 // what was sent of it
  uint64_t data_end_ = 0;           // of the data that `at_` is in
  std::shared_ptr<store::File> file_;
  std::optional<MetadataParts<Part, v1::ReadSnapshotRequest>> ahead_;

  absl::Mutex mutex_;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Step> next_ ABSL_GUARDED_BY(mutex_);  // that waits for the one on its way
  grpc::ByteBuffer message_;                          // on its way
};

grpc::ServerWriteReactor<grpc::ByteBuffer>* SnapshotsService::ReadSnapshot(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes) {
  auto request = ParseMessage<v1::ReadSnapshotRequest>(*bytes);
  absl::Status status = AdmitCall(environment_, *context, Right::kRead).status();
  status.Update(request.status());
  auto* const call =
      new ReadCall(*this, *context, request.ok() ? *std::move(request) : v1::ReadSnapshotRequest());
  if (call->is_one_too_many()) {
    status.Update(absl::ResourceExhaustedError(
        StrCat("the server has ", read_limits_.calls,
               " reads of live files under way, as many as memory_max allows: try again")));
  }
  if (status.ok()) {
    call->Begin();
  } else {
    call->Refuse(status);
  }
  return call;
}

grpc::ServerUnaryReactor* SnapshotsService::CloseSnapshot(grpc::CallbackServerContext* context,
                                                          const v1::CloseSnapshotRequest* request,
                                                          v1::CloseSnapshotResponse*) {
  grpc::ServerUnaryReactor* const call = context->DefaultReactor();
  const absl::Duration start = environment_.clock.Monotonic();
  const auto end = [this, context, call, start](const absl::Status& status) {
    NoteCallDone(environment_, *context, "CloseSnapshot", start, status);
    call->Finish(rpc::ToGrpc(status));
  };
  const absl::Status admitted = AdmitCall(environment_, *context, Right::kRead).status();
  if (!admitted.ok()) {
    end(admitted);
    return call;
  }
  closes_.Schedule([this, request, end] {
    table_.Close(request->name(), request->cut(), request->reader_id());
    end(absl::OkStatus());
  });
  return call;
}

}  // namespace h5mirror::server
