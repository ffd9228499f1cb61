// The certificate that a server shows, and its renewal while the server runs.
//
// gRPC's own watcher of certificate files takes whatever they hold, also a key without its
// certificate or half of a file, and from then on no client gets in. This one takes a pair that was
// checked, and else goes on with the one before.
#ifndef H5MIRROR_SERVER_DOOR_SERVER_CERTIFICATE_H_
#define H5MIRROR_SERVER_DOOR_SERVER_CERTIFICATE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grpc/grpc_security.h"
#include "server/settings/certificates.h"

namespace h5mirror::server {

// Thread-safe. Outlives the server that has a port with its credentials.
class ServerCertificate {
 public:
  ~ServerCertificate();
  // Errors: kInvalidArgument  names both files and says what is wrong with the pair: they do not
  //                           match, the certificate has expired, one is not PEM;
  //         those of ReadSmallFile().
  static absl::StatusOr<std::unique_ptr<ServerCertificate>> Load(
      const std::filesystem::path& certificate, const std::filesystem::path& key);

  // Reads the files again. A sound pair is shown to each client that connects from now on;
  // connections that stand go on. On an error, as Load()'s, the pair in use stays. Both are logged,
  // an error that is the same as before once.
  absl::Status Reload();

  // Of one listening port, which asks for the pair at each handshake. Owned by the caller.
  grpc_server_credentials* MakePortCredentials();

 private:
  class Port;
  struct Pair {
    KeyAndCertificate pem;
    uint64_t generation = 1;  // counts the pairs that were taken
  };

  ServerCertificate(std::filesystem::path certificate, std::filesystem::path key);

  absl::StatusOr<KeyAndCertificate> Read() const;
  Pair pair() const;

  const std::filesystem::path certificate_path_;
  const std::filesystem::path key_path_;
  mutable absl::Mutex mutex_;
  Pair pair_ ABSL_GUARDED_BY(mutex_);
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Port>> ports_ ABSL_GUARDED_BY(mutex_);  // gRPC has their addresses
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_SERVER_CERTIFICATE_H_
