#include "client_vfd/session/record_update.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "base/errno_status.h"
#include "base/local_record_json.h"

namespace h5mirror::vfd {

absl::Status UpdateRecordInPlace(const std::filesystem::path& local_file,
                                 const LocalRecord& record) {
  const std::filesystem::path path = RecordDirectory(local_file) / "client.json";
  absl::StatusOr<std::string> text = RecordToJson(record);
  if (!text.ok()) return text.status();
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? absl::OkStatus() : ErrnoToStatus(errno, path.string());
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat now {};
  if (fstat(fd, &now) < 0) return ErrnoToStatus(errno, path.string());
  // Spaces where the old text was longer: one write(2), and never a torn record.
  const auto old_size = static_cast<size_t>(now.st_size);
  if (text->size() < old_size) text->resize(old_size, ' ');
  const ssize_t written = pwrite(fd, text->data(), text->size(), 0);
  if (written < 0) return ErrnoToStatus(errno, path.string());
  return absl::OkStatus();
}

}  // namespace h5mirror::vfd
