// ReadSnapshot and CloseSnapshot. No thread waits for a slow reader. A call that finds all workers
// busy waits for its turn: readers come by the hundred when a cut is made.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/extent.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/status.h"
#include "server/calls/disk_ahead.h"
#include "server/calls/send_metadata.h"
#include "server/calls/stream_call.h"
#include "server/live/cut_source.h"
#include "server/state/convert.h"

namespace h5mirror::server {

// The messages of one call.
class SnapshotsService::ReadParts final : public TypedStreamSource<v1::ReadSnapshotResponse> {
 public:
  ReadParts(SnapshotsService& service, v1::ReadSnapshotRequest request)
      : service_(service), request_(std::move(request)) {}

  absl::StatusOr<Next> Fill(const StreamTurn& turn, v1::ReadSnapshotResponse& part) override {
    if (source_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open(part));
    } else {
      if (at_ < range_.end() && at_ >= data_end_) H5M_RETURN_IF_ERROR(FindData());
      if (at_ >= range_.end()) {
        return NextAhead(turn, part) ? Next::kMessage : Next::kEnd;
      }
      H5M_RETURN_IF_ERROR(Read(turn, part));
    }
    const bool is_last = at_ >= range_.end() && !request_.is_metadata();
    return is_last ? Next::kLastMessage : Next::kMessage;
  }

 private:
  using Part = v1::ReadSnapshotResponse;

  // The first message.
  absl::Status Open(Part& part) {
    const absl::Time open_time = service_.environment_.clock.Now();
    H5M_ASSIGN_OR_RETURN(source_, service_.OpenSource(request_));
    *source_->proto().mutable_open_time() = ToProto(open_time);
    *part.mutable_snapshot() = source_->proto();
    const uint64_t size = source_->size_bytes();
    const uint64_t wanted = request_.length_bytes() == 0 ? size : request_.length_bytes();
    range_.offset = std::min(request_.offset(), size);
    range_.length = std::min(wanted, size - range_.offset);
    at_ = range_.offset;
    return absl::OkStatus();
  }

  absl::Status Read(const StreamTurn& turn, Part& part) {
    std::string& bytes = *part.mutable_data();
    bytes.resize(std::min(turn.part_bytes, data_end_ - at_));
    disk_.Keep(*source_, at_, bytes.size(), data_end_);
    H5M_RETURN_IF_ERROR(source_->Read(at_, absl::MakeSpan(bytes)));
    part.set_offset(at_);
    part.set_data_crc32c(Crc32c(bytes));
    at_ += bytes.size();
    return absl::OkStatus();
  }

  // Skips to the next bytes that are not zeros of a hole.
  absl::Status FindData() {
    H5M_ASSIGN_OR_RETURN(const Extent data, source_->NextData(at_));
    const bool is_over = data.length == 0 || data.offset >= range_.end();
    at_ = is_over ? range_.end() : std::max(at_, data.offset);
    data_end_ = std::min(data.end(), range_.end());
    return absl::OkStatus();
  }

  // Makes the metadata that follows the range, if the request asks for it; false: no more.
  bool NextAhead(const StreamTurn& turn, Part& part) {
    if (!request_.is_metadata()) return false;
    if (!ahead_) {
      auto file = service_.OpenFile(request_.name());
      if (!file.ok()) return false;  // The range was sent.
      file_ = *std::move(file);
      ahead_.emplace(*file_, source_->size_bytes(), request_, range_);
    }
    return ahead_->Next([this](absl::Span<const Extent> ranges,
                               absl::Span<char> out) { return source_->ReadRanges(ranges, out); },
                        turn.part_bytes, part);
  }

  SnapshotsService& service_;
  const v1::ReadSnapshotRequest request_;
  std::unique_ptr<Source> source_;  // null: not opened yet
  Extent range_;                    // wanted, within the cut
  uint64_t at_ = 0;                 // what was sent of it
  uint64_t data_end_ = 0;           // of the data that `at_` is in
  DiskAhead disk_;
  std::shared_ptr<store::File> file_;
  std::optional<MetadataParts<Part, v1::ReadSnapshotRequest>> ahead_;
};

StreamReactor* SnapshotsService::ReadSnapshot(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* bytes) {
  return StartStream<v1::ReadSnapshotRequest>(
      environment_, *context, "ReadSnapshot", Right::kRead, *bytes,
      [this](v1::ReadSnapshotRequest request, const Principal&) {
        return std::make_unique<ReadParts>(*this, std::move(request));
      });
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
  LateCheck late;
  auto ticket = AdmitWithoutWait(environment_, *context, "CloseSnapshot",
                                 {Right::kRead, request->name()}, CallUse::kWait, &late);
  if (!ticket.ok()) {
    NoteRefused(environment_, *context, "CloseSnapshot", start, ticket.status());
    call->Finish(rpc::ToGrpc(ticket.status()));
    return call;
  }
  if (late.before != nullptr) {
    const auto held = std::make_shared<Callers::Ticket>(*std::move(ticket));
    closes_.Schedule([this, request, end, held, late = std::move(late)] {
      const absl::Status may = late.before();
      held->Done(may);
      *held = Callers::Ticket();
      if (may.ok()) table_.Close(request->name(), request->cut(), request->reader_id());
      end(may);
    });
    return call;
  }
  // Gives its share back at once: a close is short, and frees resources.
  ticket->Done(absl::OkStatus());
  *ticket = Callers::Ticket();
  closes_.Schedule([this, request, end] {
    table_.Close(request->name(), request->cut(), request->reader_id());
    end(absl::OkStatus());
  });
  return call;
}

}  // namespace h5mirror::server
