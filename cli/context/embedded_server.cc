#include "cli/context/embedded_server.h"

#include <stdlib.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/install_dirs.h"

namespace h5mirror::tools {
namespace {

constexpr std::string_view kPrefix = "embedded:";

// The first line of h5mirrord --embedded.
absl::Status StatusOfLine(const std::string& line) {
  if (line == "ready") return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  int code = 0;
  if (parts.size() != 3 || parts[0] != "error" || !absl::SimpleAtoi(parts[1], &code)) {
    return absl::InternalError(StrCat("h5mirrord said: ", line));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), parts[2]);
}

absl::StatusOr<std::filesystem::path> MakePrivateDirectory() {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "h5mirror-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return ErrnoToStatus(errno, StrCat("make ", pattern));
  return std::filesystem::path(pattern);
}

}  // namespace

std::string EmbeddedAddress(const std::filesystem::path& path) {
  return StrCat(kPrefix, path.string());
}
bool IsEmbeddedAddress(const std::string& address) { return address.starts_with(kPrefix); }
std::filesystem::path PathOfEmbedded(const std::string& address) {
  return address.substr(kPrefix.size());
}

EmbeddedServer::EmbeddedServer(std::filesystem::path directory)
    : directory_(std::move(directory)),
      address_(StrCat("unix:", (directory_ / "socket").string())) {}

EmbeddedServer::~EmbeddedServer() {
  helper_.reset();
  std::error_code ignored;  // A leftover in the directory for temporary files.
  std::filesystem::remove_all(directory_, ignored);
}

absl::StatusOr<std::unique_ptr<EmbeddedServer>> EmbeddedServer::Start(
    const std::filesystem::path& head, absl::Duration timeout) {
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path daemon, FindDaemon());
  H5M_ASSIGN_OR_RETURN(std::filesystem::path directory, MakePrivateDirectory());
  std::unique_ptr<EmbeddedServer> server(new EmbeddedServer(std::move(directory)));
  H5M_ASSIGN_OR_RETURN(
      server->helper_,
      Helper::Start({daemon.string(), "--embedded", head.string(), "--listen", server->address_,
                     "--root", head.parent_path().string(), "--log-level", "warn", "--memory-max",
                     "256MiB", "--socket-mode", "0600"}));
  const absl::StatusOr<std::string> line = server->helper_->ReadLine(timeout);
  if (!line.ok()) server->helper_->Kill();  // Its durable cuts are there at the next open.
  H5M_RETURN_IF_ERROR(line.status());
  H5M_RETURN_IF_ERROR(StatusOfLine(*line));
  return server;
}

}  // namespace h5mirror::tools
