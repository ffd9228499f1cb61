// MapVersion and ListChanges: where a version's pages are, and what differs between two.
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "server/services/versions_service.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

// Runs of one MapVersion message.
constexpr int kMapRuns = 1000;
// And the checksums that it brings, about.
constexpr size_t kMapSums = 1 << 16;
// And the bytes of the names of files.
constexpr size_t kMapNameBytes = 256 << 10;

}  // namespace

// Sends runs of pages in messages of a bounded size. Runs that the store gives in parts are joined
// first.
class VersionsService::MapParts final : public TypedStreamSource<v1::MapVersionResponse> {
 public:
  MapParts(VersionsService& service, const v1::MapVersionRequest& request)
      : service_(service), request_(request) {}

  absl::StatusOr<Next> Fill(const StreamTurn&, v1::MapVersionResponse& response) override {
    if (reader_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open(response));
      return Next::kMessage;
    }
    size_t sums = 0, name_bytes = 0;
    while (response.runs_size() < kMapRuns && sums < kMapSums && name_bytes < kMapNameBytes) {
      H5M_ASSIGN_OR_RETURN(const store::PlacedRun run, NextRun());
      if (run.page_count == 0) return response.runs_size() == 0 ? Next::kEnd : Next::kLastMessage;
      sums += run.page_crc32c.size();
      name_bytes += run.file.size();
      *response.add_runs() = ToProto(run);
    }
    return Next::kMessage;
  }

 private:
  absl::Status Open(v1::MapVersionResponse& response) {
    H5M_RETURN_IF_ERROR(CheckVersion(request_.version()));
    H5M_ASSIGN_OR_RETURN(file_, service_.Open(request_.name()));
    H5M_ASSIGN_OR_RETURN(reader_, file_->OpenVersion(request_.version()));
    *response.mutable_version() = ToProto(reader_->info());
    response.set_page_size_bytes(reader_->page_size_bytes());
    page_ = request_.first_page();
    const bool is_all =
        request_.page_count() == 0 || request_.page_count() > UINT64_MAX - request_.first_page();
    end_ = is_all ? UINT64_MAX : request_.first_page() + request_.page_count();
    return absl::OkStatus();
  }

  // As long as it is, but for one that comes with checksums: it is as large as it is long. Of no
  // pages: there are no more.
  absl::StatusOr<store::PlacedRun> NextRun() {
    store::PlacedRun run;
    for (;;) {
      if (found_.empty()) H5M_RETURN_IF_ERROR(Find());
      if (found_.empty()) return run;
      if (run.page_count == 0) {
        run = std::move(found_.front());
      } else if (run.page_crc32c.size() >= kMapSums ||
                 !run.TakeIn(found_.front(), reader_->page_size_bytes())) {
        return run;
      }
      found_.pop_front();
    }
  }

  // The next runs that the request wants; none: there are no more.
  absl::Status Find() {
    if (page_ >= end_) return absl::OkStatus();
    const auto sums = request_.checksums() ? store::PageSums::kGive : store::PageSums::kLeaveOut;
    H5M_ASSIGN_OR_RETURN(std::vector<store::PlacedRun> runs, reader_->Locate(page_, sums));
    page_ = runs.empty() ? end_ : runs.back().page_end();
    for (store::PlacedRun& run : runs) {
      if (run.page >= end_) break;
      run.TruncateTo(end_);
      found_.push_back(std::move(run));
    }
    return absl::OkStatus();
  }

  VersionsService& service_;
  const v1::MapVersionRequest request_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::VersionReader> reader_;  // null: not opened yet
  uint64_t page_ = 0;                             // what is looked for next
  uint64_t end_ = 0;
  std::deque<store::PlacedRun> found_;
};

class VersionsService::ChangeParts final : public TypedStreamSource<v1::ListChangesResponse> {
 public:
  ChangeParts(VersionsService& service, const v1::ListChangesRequest& request)
      : service_(service), request_(request) {}

  absl::StatusOr<Next> Fill(const StreamTurn&, v1::ListChangesResponse& response) override {
    if (reader_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open(response));
      return Next::kMessage;
    }
    if (is_over_) return Next::kEnd;
    std::vector<Extent> ranges;
    H5M_ASSIGN_OR_RETURN(const bool more, reader_->Next(&ranges));
    is_over_ = !more;
    if (ranges.empty()) return more ? Next::kNothingYet : Next::kEnd;
    for (const Extent& range : ranges) {
      v1::ByteRange& added = *response.add_ranges();
      added.set_offset(range.offset);
      added.set_length_bytes(range.length);
    }
    return more ? Next::kMessage : Next::kLastMessage;
  }

 private:
  absl::Status Open(v1::ListChangesResponse& response) {
    H5M_RETURN_IF_ERROR(CheckVersion(request_.from_version()));
    H5M_RETURN_IF_ERROR(CheckVersion(request_.to_version()));
    H5M_ASSIGN_OR_RETURN(file_, service_.Open(request_.name()));
    H5M_ASSIGN_OR_RETURN(reader_,
                         file_->OpenChanges(request_.from_version(), request_.to_version()));
    *response.mutable_from() = ToProto(reader_->from());
    *response.mutable_to() = ToProto(reader_->to());
    response.set_page_size_bytes(reader_->page_size_bytes());
    return absl::OkStatus();
  }

  VersionsService& service_;
  const v1::ListChangesRequest request_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::ChangeReader> reader_;  // null: not opened yet
  bool is_over_ = false;
};

StreamReactor* VersionsService::MapVersion(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* bytes) {
  return StartStream<v1::MapVersionRequest>(
      environment_, *context, "MapVersion", Right::kRead, *bytes,
      [this](const v1::MapVersionRequest& request, const Principal&) {
        return std::make_unique<MapParts>(*this, request);
      });
}

StreamReactor* VersionsService::ListChanges(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* bytes) {
  return StartStream<v1::ListChangesRequest>(
      environment_, *context, "ListChanges", Right::kRead, *bytes,
      [this](const v1::ListChangesRequest& request, const Principal&) {
        return std::make_unique<ChangeParts>(*this, request);
      });
}

}  // namespace h5mirror::server
