// Who did what to which file: a JSON line for each call, in a file that only grows. Its fields:
// docs/reference/audit.md.
#ifndef H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_
#define H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

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

// One call that has ended, or was refused.
struct AuditRecord {
  absl::Time end;
  absl::Duration took;
  const Principal* caller = nullptr;  // null: none was authenticated
  std::string peer;                   // grpc::ServerContextBase::peer()
  std::string_view method;            // "ReadVersion"
  Needs needs;                        // the files, and what was wanted of each
  CallBytes bytes;
  absl::Status status;
};

// The line, without its end. Bytes that are no UTF-8 are replaced.
std::string FormatAuditRecord(const AuditRecord& record);

// Thread-safe.
class AuditLog {
 public:
  // Appends to `path`, which is made with mode 0640. Errors: those of open().
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::filesystem::path& path);

  // Opens the path again, after it was renamed. On an error the old file is written on.
  absl::Status Reopen();
  // Appends a line, by one write(). A line that cannot be written is lost, and counted; the log of
  // the server tells of it once a minute.
  void Write(const AuditRecord& record);
  uint64_t lost() const { return lost_; }

 private:
  explicit AuditLog(const std::filesystem::path& path) : path_(path) {}

  const std::filesystem::path path_;
  absl::Mutex mutex_;
  OwnedFd fd_ ABSL_GUARDED_BY(mutex_);
  absl::Time told_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::atomic<uint64_t> lost_{0};
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_AUDIT_LOG_H_
