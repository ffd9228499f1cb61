// The server's certificate, and its renewal while the server runs.
//
// gRPC's own watcher takes any content of the certificate files, even half a file or the key of
// another certificate. From then on no client can connect. This one takes only a checked pair, and
// otherwise keeps the former one.
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
#include "server/door/client_certificates.h"
#include "server/settings/certificates.h"

namespace h5mirror::server {

// Thread-safe. Must outlive the server that has a port with its credentials.
class ServerCertificate {
 public:
  ~ServerCertificate();
  // Errors: kInvalidArgument  the two do not match, the certificate has expired, or one is no PEM;
  //                           the message names both files.
  //         those of ReadSmallFile().
  // With `clients`, which must outlive this, clients are asked for a certificate of its authority;
  // one without goes on, and shows a token.
  static absl::StatusOr<std::unique_ptr<ServerCertificate>> Load(
      const std::filesystem::path& certificate, const std::filesystem::path& key,
      const ClientCertificates* clients = nullptr);

  // Reads the files again, and takes the authority that `clients` has by now. Clients that connect
  // from now on get the new pair; connections go on. On an error, as Load()'s, the pair in use
  // stays. Logs both; a repeated error once.
  absl::Status Reload();

  // Logs that users of this machine other than the owner and its group have rights to the key. Not
  // refused: an older installation must still start. Reload() warns of a new key by itself.
  void WarnIfOthersReadKey() const;

  // The pair that counts now.
  KeyAndCertificate current() const { return pair().pem; }

  // Credentials for one listening port, which asks for the pair at each handshake. The caller owns
  // them.
  grpc_server_credentials* MakePortCredentials();

 private:
  class Port;
  struct Pair {
    KeyAndCertificate pem;
    std::string client_authority_pem;  // empty: clients are asked for nothing
    uint64_t generation = 1;           // the number of this pair
  };

  ServerCertificate(std::filesystem::path certificate, std::filesystem::path key,
                    const ClientCertificates* clients);

  absl::StatusOr<KeyAndCertificate> Read() const;
  std::string ClientAuthority() const;
  Pair pair() const;

  const std::filesystem::path certificate_path_;
  const std::filesystem::path key_path_;
  const ClientCertificates* const clients_;
  mutable absl::Mutex mutex_;
  Pair pair_ ABSL_GUARDED_BY(mutex_);
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Port>> ports_ ABSL_GUARDED_BY(mutex_);  // gRPC has their addresses
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_SERVER_CERTIFICATE_H_
