// Certificates of clients: the site's authority vouches for the caller's name, and no token is
// needed.
#ifndef H5MIRROR_SERVER_DOOR_CLIENT_CERTIFICATES_H_
#define H5MIRROR_SERVER_DOOR_CLIENT_CERTIFICATES_H_

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/door/known_identities.h"
#include "server/settings/name_pattern.h"
#include "server/settings/openssl_pointers.h"

namespace h5mirror::server {

// A certificate that gRPC has verified against the authority.
struct ClientIdentity {
  std::string name;    // by the first of the patterns that fits
  std::string issuer;  // the authority's name, DER as in its own certificate
  std::string serial;  // DER
  absl::Time expires;
};

struct ClientCertificateSettings {
  std::filesystem::path authority;   // PEM: one certificate or several
  std::filesystem::path revocation;  // PEM: CRLs of these; empty: none
  std::vector<NamePattern> names;
};

// Thread-safe.
class ClientCertificates {
 public:
  // Errors: kInvalidArgument  a file is no PEM, or a CRL is of none of the authorities, or its
  //                           signature is wrong; names the setting and the file.
  //         kPermissionDenied  others may write a file
  //         those of ReadGuardedFile().
  static absl::StatusOr<std::unique_ptr<ClientCertificates>> Load(
      const ClientCertificateSettings& settings);

  // Reads both files again. On an error all stays as it was.
  absl::Status Reload();

  // The authority for gRPC, which verifies signatures and times.
  std::string authority_pem() const;

  // The identity in a certificate that gRPC has verified.
  // kUnauthenticated: no name fits, it has expired, or was revoked.
  absl::StatusOr<std::shared_ptr<const ClientIdentity>> Find(std::string_view pem) const;
  // Checks an identity of Find() again.
  absl::Status StillValid(const ClientIdentity& identity) const;
  // When the next certificate that was found expires, or one of the last 2 s did:
  // KnownIdentities::NextEnd().
  absl::Time NextExpiry() const;

 private:
  using Revoked = std::set<std::pair<std::string, std::string>>;  // issuer and serial, DER
  struct Files {
    std::string authority_pem;
    std::shared_ptr<const std::vector<CertificatePtr>> authorities;
    Revoked revoked;
  };
  explicit ClientCertificates(ClientCertificateSettings settings)
      : settings_(std::move(settings)) {}
  absl::StatusOr<Files> Read() const;
  absl::StatusOr<ClientIdentity> Parse(std::string_view pem) const;

  const ClientCertificateSettings settings_;
  mutable absl::Mutex mutex_;
  Files files_ ABSL_GUARDED_BY(mutex_);
  mutable KnownIdentities<ClientIdentity, &ClientIdentity::expires> known_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_CLIENT_CERTIFICATES_H_
