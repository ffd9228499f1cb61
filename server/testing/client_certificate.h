// Certificates of clients, and lists of revoked ones, for tests.
#ifndef H5MIRROR_SERVER_TESTING_CLIENT_CERTIFICATE_H_
#define H5MIRROR_SERVER_TESTING_CLIENT_CERTIFICATE_H_

#include <string>
#include <vector>

#include "server/settings/certificates.h"

namespace h5mirror::server {

struct ClientCertificateRequest {
  std::string common_name;
  std::string alternative_names = {};  // as OpenSSL's subjectAltName: "URI:a,DNS:b"
  long serial = 1;
  int valid_days = 1;  // negative: it has expired
};

// Fails the test where it cannot be made.
KeyAndCertificate MakeClientCertificate(const KeyAndCertificate& authority,
                                        const ClientCertificateRequest& request);
// PEM of a list that `authority` has signed, and whose issuer is its name in other bytes.
std::string MakeRevocationList(const KeyAndCertificate& authority,
                               const std::vector<long>& serials);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_CLIENT_CERTIFICATE_H_
