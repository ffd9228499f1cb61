// The audit log: a JSON line for each call, with its caller, its files and its result, in a file
// that only grows. The fields: docs/reference/audit.md.
#ifndef H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_
#define H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/door/auth.h"

namespace h5mirror::server {

// How many bytes of files a call has moved.
struct CallBytes {
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct AuditRecord {
  enum class Event : uint8_t {
    kBegin,  // a session or a follower, which may last for days
    kEnd,    // a call has ended, or was refused
  };
  Event event = Event::kEnd;
  absl::Time time;
  absl::Duration took = {};           // kEnd
  const Principal* caller = nullptr;  // null: none was authenticated
  std::string claimed = {};           // the client's own account of itself; empty: it gave none
  std::string peer = {};              // grpc::ServerContextBase::peer()
  std::optional<uid_t> uid = {};      // at the other end of a Unix socket
  std::string_view method = {};       // "ReadVersion"
  Needs needs = {};                   // the files, and the right that was needed to each
  CallBytes bytes = {};               // kEnd
  absl::Status status = {};           // kEnd
  int http_status = 0;                // kEnd: of the answer; 0: not by HTTP, or there was none
};

// The line, without its end. Bytes that are no UTF-8 are replaced. A text from a client is cut to
// kTextMax bytes, with "..." behind it, because nobody has checked it yet.
inline constexpr size_t kTextMax = 2048;
std::string FormatAuditRecord(const AuditRecord& record);

// Thread-safe. A thread of its own writes, so that a disk that hangs holds up no call.
class AuditLog {
 public:
  // Appends to `path`, which is made with mode 0640; "-": to standard output.
  // kInvalidArgument: that cannot be done.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::filesystem::path& path);
  // Writes the lines that are left, for kEndMax at most.
  ~AuditLog();
  static constexpr absl::Duration kEndMax = absl::Seconds(5);

  // Call after the path was renamed: it is opened again before the next line. If that fails, lines
  // still go to the old file, and the server's log says so.
  void Reopen();
  // Appends a line, soon, without fsync. A line that cannot be written, or that finds kQueueMax
  // bytes before it, is lost, and counted; the log of the server tells of it once a minute. The
  // call goes on: a full disk under an audit log must stop no instrument.
  void Write(const AuditRecord& record);
  static constexpr size_t kQueueMax = 16 << 20;
  uint64_t lost() const;

 private:
  struct State;
  explicit AuditLog(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;  // the thread's too: it may outlive this
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_
