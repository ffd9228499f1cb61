#include "server/http/event_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "google/protobuf/util/json_util.h"
#include "rpc/elsewhere.h"

namespace h5mirror::server {
namespace {

// A comment, so that both sides notice when the other has gone.
constexpr char kNoEvent[] = ": \n\n";

std::string EventText(std::string_view event, const EventPlace& place, std::string_view json) {
  return StrCat("event: ", event, "\nid: ", Format(place), "\ndata: ", json, "\n\n");
}

std::optional<int64_t> ParseCount(absl::string_view text) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count < 0) return std::nullopt;
  return count;
}

}  // namespace

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message, bool is_indented) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = is_indented;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return absl::InternalError(StrCat("JSON: ", status.ToString()));
  return json;
}

std::string Format(const EventPlace& place) {
  return StrCat(place.file_id, "-", place.cut, "-", place.version);
}

std::optional<EventPlace> ParseEventPlace(std::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(ToAbsl(text), '-');
  if (parts.size() != 3 || !ParseHex16(ToStd(parts[0])).ok()) return std::nullopt;
  const std::optional<int64_t> cut = ParseCount(parts[1]);
  const std::optional<int64_t> version = ParseCount(parts[2]);
  if (!cut || !version) return std::nullopt;
  return EventPlace{std::string(parts[0]), *cut, *version};
}

// Remembers a cut that comes while an event is being made.
class EventStream::Wake : public std::enable_shared_from_this<EventStream::Wake> {
 public:
  // Once Await() has called: the next cut of `name` counts from now on.
  void Arm(CutBoard& board, const std::string& name) {
    {
      absl::MutexLock lock(&mutex_);
      has_come_ = false;
    }
    board.Wait(name, kHeartbeat, [weak = weak_from_this()](CutBoard::Why why) {
      if (const auto self = weak.lock(); self != nullptr) self->Come(why);
    });
  }
  // Calls `then` when it has come.
  void Await(std::function<void()> then) {
    {
      absl::MutexLock lock(&mutex_);
      if (!has_come_) {
        then_ = std::move(then);
        return;
      }
    }
    then();
  }
  // The same after a while, whatever comes until then. No file has an empty name, so nothing but
  // the time ends the wait.
  void ComeAfter(CutBoard& board, absl::Duration pause) {
    board.Wait("", pause, [weak = weak_from_this()](CutBoard::Why why) {
      if (const auto self = weak.lock(); self != nullptr) self->Come(why);
    });
  }
  // There is more to tell already.
  void ComeAgain() {
    absl::MutexLock lock(&mutex_);
    has_come_ = true;
  }
  bool is_stopped() const {
    absl::MutexLock lock(&mutex_);
    return is_stopped_;
  }

 private:
  void Come(CutBoard::Why why) {
    std::function<void()> then;
    {
      absl::MutexLock lock(&mutex_);
      has_come_ = true;
      is_stopped_ = is_stopped_ || why == CutBoard::Why::kStopped;
      then.swap(then_);
    }
    if (then) then();
  }

  mutable absl::Mutex mutex_;
  bool has_come_ ABSL_GUARDED_BY(mutex_) = true;  // the first event comes at once
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> then_ ABSL_GUARDED_BY(mutex_);
};

EventStream::EventStream(FilesService& files, VersionsService& versions, CutBoard& board,
                         Clock& clock, std::string name, std::optional<EventPlace> after,
                         StillMay still_may)
    : files_(files),
      versions_(versions),
      board_(board),
      clock_(clock),
      name_(std::move(name)),
      still_may_(std::move(still_may)),
      wake_(std::make_shared<Wake>()),
      place_(std::move(after)),
      last_event_(clock.Monotonic() - kPause) {}

void EventStream::Await(std::function<void()> then) {
  const absl::Duration pause = last_event_ + kPause - clock_.Monotonic();
  if (pause <= absl::ZeroDuration()) return wake_->Await(std::move(then));
  // No file has an empty name, so nothing but the time ends this.
  board_.Wait("", pause,
              [wake = wake_, then = std::move(then)](CutBoard::Why) { wake->Await(then); });
}

absl::StatusOr<std::string> EventStream::NewVersions(int64_t newest) {
  const int64_t last = std::min(newest, place_->version + kVersionsAtOnce);
  v1::ListVersionsRequest request;
  request.set_name(name_);
  request.set_page_size(kVersionsAtOnce);
  request.set_page_token(StrCat(last + 1));  // only older ones
  v1::ListVersionsResponse response;
  H5M_RETURN_IF_ERROR(versions_.List(request, response));
  std::string events;
  for (auto version = response.versions().rbegin(); version != response.versions().rend();
       ++version) {
    if (version->version() <= place_->version) continue;
    place_->version = version->version();
    H5M_ASSIGN_OR_RETURN(const std::string json, ToJson(*version, /*is_indented=*/false));
    events += EventText("version", *place_, json);
  }
  place_->version = last;  // What is missing was dropped.
  if (last < newest) {
    wake_->ComeAgain();
    last_event_ = clock_.Monotonic() - kPause;  // It catches up without pauses.
  }
  return events;
}

absl::StatusOr<std::string> EventStream::NewEvents() {
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status, files_.GetStatus(name_));
  H5M_ASSIGN_OR_RETURN(const Bytes16 file_id, FromByteString(status.file_id()));
  const EventPlace newest{HexOf(file_id), status.last_cut(), status.newest_version().version()};
  // The place is of another file, or there is none: older events are not told.
  if (!place_ || place_->file_id != newest.file_id) {
    place_ = EventPlace{newest.file_id, 0, newest.version};
  }
  std::string events;
  if (place_->version < newest.version) {
    H5M_ASSIGN_OR_RETURN(events, NewVersions(newest.version));
  }
  if (std::exchange(is_first_, false) || place_->cut != newest.cut || !events.empty()) {
    if (place_->cut != newest.cut) wake_->ComeAfter(board_, kLookAgain);
    place_->cut = newest.cut;
    H5M_ASSIGN_OR_RETURN(const std::string json, ToJson(status, /*is_indented=*/false));
    events += EventText("state", *place_, json);
  }
  return events.empty() ? std::string(kNoEvent) : events;
}

absl::StatusOr<std::optional<HttpPart>> EventStream::Next(uint64_t) {
  if (wake_->is_stopped()) return std::optional<HttpPart>();
  wake_->Arm(board_, name_);
  last_event_ = clock_.Monotonic();
  const std::optional<EventPlace> place = place_;
  const bool is_first = is_first_;
  absl::StatusOr<std::string> events = NewEvents();
  const absl::Status may = still_may_();
  // The client asks again, and is sent there.
  if (rpc::ElsewhereOf(may)) return may;
  const absl::Status& told = may.ok() ? events.status() : may;
  if (absl::IsUnavailable(told) && !rpc::ElsewhereOf(told)) {
    // A disk that fails takes nothing from anybody, for now, and neither does a cell that changes
    // its server: a browser asks no more after an error. The events are made again soon.
    place_ = place;
    is_first_ = is_first;
    wake_->ComeAgain();
    return std::optional<HttpPart>(PartOf(kNoEvent));
  }
  H5M_RETURN_IF_ERROR(may);
  H5M_RETURN_IF_ERROR(events.status());
  return std::optional<HttpPart>(PartOf(*events));
}

}  // namespace h5mirror::server
