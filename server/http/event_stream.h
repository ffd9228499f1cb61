// The events of one file, as Server-Sent Events: docs/reference/http.md.
#ifndef H5MIRROR_SERVER_HTTP_EVENT_STREAM_H_
#define H5MIRROR_SERVER_HTTP_EVENT_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "google/protobuf/message.h"
#include "server/http/message.h"
#include "server/services/files_service.h"
#include "server/services/versions_service.h"
#include "server/state/cut_board.h"

namespace h5mirror::server {

// The message as JSON with the names of proto/. A 64-bit number is a string, as in protobuf's own
// mapping.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message, bool is_indented);

// A client's place in the events of a file: the "id" of the last event.
struct EventPlace {
  std::string file_id;  // hex
  int64_t cut = 0;
  int64_t version = 0;

  bool operator==(const EventPlace&) const = default;
};
std::string Format(const EventPlace& place);
// nullopt: `text` is not such an id.
std::optional<EventPlace> ParseEventPlace(std::string_view text);

// Thread-compatible. Holds nothing of the file between two events.
class EventStream final : public HttpStream {
 public:
  // At the latest after this time something is sent, so that each side notices that the other has
  // gone. A version made without a cut is also reported then.
  static constexpr absl::Duration kHeartbeat = absl::Seconds(10);
  // A version is made a moment after its cut, and no further cut announces it. So the stream looks
  // once more after this time.
  static constexpr absl::Duration kLookAgain = absl::Seconds(1);
  // The least time between two events of a file that is cut often.
  static constexpr absl::Duration kPause = absl::Milliseconds(500);
  // The most versions in one event; the rest follow with the next. So many fit into a page of a
  // list, with comments of any length.
  static constexpr int kVersionsAtOnce = 20;

  // OK: the caller may still read the file that has the name now. kUnavailable: the right cannot be
  // looked up. May wait for a disk.
  using StillMay = std::function<absl::Status()>;

  // The references must outlive this. `after`: the last version that the client has seen; nullopt:
  // none. `still_may` is asked once the events are made: the name may have got another file since.
  EventStream(FilesService& files, VersionsService& versions, CutBoard& board, Clock& clock,
              std::string name, std::optional<EventPlace> after, StillMay still_may);

  void Await(std::function<void()> then) override;
  absl::StatusOr<std::optional<HttpPart>> Next(uint64_t max_bytes) override;

 private:
  class Wake;

  // The events since `place_`, which moves on; a comment if there are none.
  absl::StatusOr<std::string> NewEvents();
  absl::StatusOr<std::string> NewVersions(int64_t newest);

  FilesService& files_;
  VersionsService& versions_;
  CutBoard& board_;
  Clock& clock_;
  const std::string name_;
  const StillMay still_may_;
  const std::shared_ptr<Wake> wake_;
  std::optional<EventPlace> place_;
  bool is_first_ = true;
  absl::Duration last_event_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_EVENT_STREAM_H_
