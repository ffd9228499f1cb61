// A server for one file that has its history beside it: h5mirrord --embedded, on a socket that
// nobody else can reach, as long as this program needs it.
#ifndef H5MIRROR_CLI_CONTEXT_EMBEDDED_SERVER_H_
#define H5MIRROR_CLI_CONTEXT_EMBEDDED_SERVER_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/process/child.h"

namespace h5mirror::tools {

// The server of such a file, in configurations and flags.
inline constexpr char kEmbedded[] = "embedded";

// The name of the embedded server of the file at `path` within this program, and the inverse.
std::string EmbeddedAddress(const std::filesystem::path& path);
bool IsEmbeddedAddress(const std::string& address);
std::filesystem::path PathOfEmbedded(const std::string& address);

class EmbeddedServer {
 public:
  // Errors: those of store::EmbeddedLease::Take() and of opening the file; kNotFound also: no
  // history, or no h5mirrord; kDeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<EmbeddedServer>> Start(const std::filesystem::path& head,
                                                               absl::Duration timeout);
  // Waits until it has finished the work in hand.
  ~EmbeddedServer();

  const std::string& address() const { return address_; }

 private:
  explicit EmbeddedServer(std::filesystem::path directory);

  const std::filesystem::path directory_;  // of the socket
  const std::string address_;
  std::unique_ptr<Helper> helper_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_EMBEDDED_SERVER_H_
