// Makes a private certificate authority and a server certificate, for `h5mirrord init`.
#ifndef H5MIRROR_SERVER_SETTINGS_CERTIFICATES_H_
#define H5MIRROR_SERVER_SETTINGS_CERTIFICATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::server {

// PEM texts of a P-256 key and its certificate.
struct KeyAndCertificate {
  std::string key_pem;
  std::string certificate_pem;
};

// A self-signed authority that may sign server certificates and nothing below it.
// kInternal carries OpenSSL's reason.
absl::StatusOr<KeyAndCertificate> MakeAuthority(std::string_view common_name, int valid_days);

// A server certificate under `authority` for `hosts`: names and literal IP addresses.
// kInvalidArgument names a host that is neither.
absl::StatusOr<KeyAndCertificate> MakeServerCertificate(const KeyAndCertificate& authority,
                                                        const std::vector<std::string>& hosts,
                                                        int valid_days);

// The names and addresses of a certificate, as MakeServerCertificate() takes them; other kinds are
// left out. kInvalidArgument: it is no PEM.
absl::StatusOr<std::vector<std::string>> HostsOf(const std::string& certificate_pem);

// OK: the key belongs to the first certificate, which has not expired, and the others of the chain
// are whole. kInvalidArgument: they are not; the message says why.
absl::Status CheckPair(const KeyAndCertificate& pair);

// The names under which this machine can be reached: host name, full name, localhost and
// the addresses of its interfaces that are up.
std::vector<std::string> LocalHostNames();

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_CERTIFICATES_H_
