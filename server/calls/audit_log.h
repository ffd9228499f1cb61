// The audit log: a JSON line for each call, with its caller, its files and its result, in a file
// that only grows. The fields: docs/reference/audit.md.
#ifndef H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_
#define H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/owned_fd.h"
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
  Needs needs = {};                   // the files, and what was wanted of each
  CallBytes bytes = {};               // kEnd
  absl::Status status = {};           // kEnd
};

// The line, without its end. Bytes that are no UTF-8 are replaced.
std::string FormatAuditRecord(const AuditRecord& record);

// Thread-safe. A thread of its own writes, so that a disk that hangs holds up no call.
class AuditLog {
 public:
  // Appends to `path`, which is made with mode 0640; "-": to standard output.
  // kInvalidArgument: that cannot be done.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::filesystem::path& path);
  // Writes what is left.
  ~AuditLog();

  // Opens the path again, after it was renamed. On an error the old file is written on.
  absl::Status Reopen();
  // Appends a line, soon, without fsync. A line that cannot be written, or that finds kQueueMax
  // bytes before it, is lost, and counted; the log of the server tells of it once a minute. The
  // call goes on: a full disk under an audit log must stop no instrument.
  void Write(const AuditRecord& record);
  static constexpr size_t kQueueMax = 16 << 20;
  uint64_t lost() const { return lost_; }

 private:
  explicit AuditLog(const std::filesystem::path& path) : path_(path) {}
  void Run();
  // Returns how many lines of `text` were not written, and in `error` why.
  static uint64_t Append(int fd, std::string_view text, int& error);
  void TellLost(int error);
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ends_ || !queue_.empty(); }

  const std::filesystem::path path_;
  absl::Mutex mutex_;
  std::shared_ptr<const OwnedFd> fd_ ABSL_GUARDED_BY(mutex_);
  std::string queue_ ABSL_GUARDED_BY(mutex_);  // whole lines
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> lost_{0};
  absl::Time told_ = absl::InfinitePast();  // the thread's own
  uint64_t told_lost_ = 0;                  // the thread's own
  std::thread thread_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_
