#include "server/door/client_certificates.h"

#include <algorithm>
#include <optional>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "openssl/err.h"
#include "server/settings/openssl_pointers.h"
#include "server/settings/secret_file.h"

namespace h5mirror::server {
namespace {

absl::Status Bad(std::string_view setting, const std::filesystem::path& path,
                 std::string_view why) {
  return absl::InvalidArgumentError(StrCat(setting, " = \"", path.string(), "\": ", why));
}

// How many objects a PEM text begins.
size_t CountBegun(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  size_t count = 0;
  for (size_t at = 0; (at = pem.find(kBegin, at)) != std::string_view::npos; at += kBegin.size()) {
    ++count;
  }
  return count;
}

// All objects of one kind in a PEM text, which holds no others; nullopt: one cannot be read. `read`
// is PEM_read_bio_X509 or its like.
template <typename Ptr, typename Read>
std::optional<std::vector<Ptr>> ReadAll(std::string_view pem, const Read& read) {
  std::vector<Ptr> found;
  const BioPtr bio = ReaderOf(pem);
  while (Ptr object = Ptr(read(bio.get(), nullptr, nullptr, nullptr))) {
    found.push_back(std::move(object));
  }
  ERR_clear_error();
  // OpenSSL skips objects of other kinds, and gives up at a damaged one.
  if (found.size() != CountBegun(pem)) return std::nullopt;
  return found;
}

std::string DerOf(const X509_NAME* name) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_NAME(name, &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::max(size, 0)));
  OPENSSL_free(bytes);
  return der;
}

std::string DerOf(const ASN1_INTEGER* number) {
  unsigned char* bytes = nullptr;
  const int size = i2d_ASN1_INTEGER(number, &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::max(size, 0)));
  OPENSSL_free(bytes);
  return der;
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

absl::Time TimeOf(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// The subject's common name; empty: it has none, or several.
std::string CommonNameOf(X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return "";
  unsigned char* utf8 = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return name;
}

// The texts of one field.
std::vector<std::string> TextsOf(X509* certificate, NamePattern::Field field) {
  if (field == NamePattern::Field::kCommonName) return {CommonNameOf(certificate)};
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> texts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI && field == NamePattern::Field::kUri) {
      texts.push_back(TextOf(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_DNS && field == NamePattern::Field::kDns) {
      texts.push_back(TextOf(name->d.dNSName));
    } else if (name->type == GEN_EMAIL && field == NamePattern::Field::kEmail) {
      texts.push_back(TextOf(name->d.rfc822Name));
    }
  }
  return texts;
}

using Authorities = std::vector<CertificatePtr>;

// The one of that name; nullptr: none. Equal names may have different bytes.
X509* FindAuthority(const Authorities& authorities, const X509_NAME* name) {
  const auto found =
      std::find_if(authorities.begin(), authorities.end(), [name](const CertificatePtr& authority) {
        return X509_NAME_cmp(name, X509_get_subject_name(authority.get())) == 0;
      });
  return found == authorities.end() ? nullptr : found->get();
}

// The name as the authority itself writes it, if it is one of them.
std::string IssuerOf(const Authorities& authorities, const X509_NAME* name) {
  X509* const authority = FindAuthority(authorities, name);
  return DerOf(authority == nullptr ? name : X509_get_subject_name(authority));
}

// One of `authorities` has signed the CRL. Several may have its name, after a renewal.
bool IsSigned(X509_CRL* crl, const Authorities& authorities) {
  return std::any_of(
      authorities.begin(), authorities.end(), [crl](const CertificatePtr& authority) {
        return X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_subject_name(authority.get())) ==
                   0 &&
               X509_CRL_verify(crl, X509_get0_pubkey(authority.get())) == 1;
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientCertificates>> ClientCertificates::Load(
    const ClientCertificateSettings& settings) {
  auto loaded = absl::WrapUnique(new ClientCertificates(settings));
  H5M_RETURN_IF_ERROR(loaded->Reload());
  return loaded;
}

absl::StatusOr<ClientCertificates::Files> ClientCertificates::Read() const {
  Files files;
  H5M_ASSIGN_OR_RETURN(files.authority_pem, ReadGuardedFile(settings_.authority));
  auto authorities = ReadAll<CertificatePtr>(files.authority_pem, PEM_read_bio_X509);
  if (!authorities || authorities->empty()) {
    return Bad("tls_client_ca", settings_.authority,
               "must hold PEM certificates and nothing else, and each must be whole");
  }
  files.authorities = std::make_shared<const Authorities>(*std::move(authorities));
  if (settings_.revocation.empty()) return files;
  H5M_ASSIGN_OR_RETURN(const std::string pem, ReadGuardedFile(settings_.revocation));
  const auto crls = ReadAll<CrlPtr>(pem, PEM_read_bio_X509_CRL);
  if (!crls || crls->empty()) {
    return Bad("tls_client_crl", settings_.revocation,
               "must hold PEM CRLs and nothing else, and each must be whole");
  }
  for (const CrlPtr& crl : *crls) {
    if (!IsSigned(crl.get(), *files.authorities)) {
      return Bad("tls_client_crl", settings_.revocation,
                 "a CRL in it is signed by none of tls_client_ca");
    }
    const std::string issuer = IssuerOf(*files.authorities, X509_CRL_get_issuer(crl.get()));
    STACK_OF(X509_REVOKED)* const revoked = X509_CRL_get_REVOKED(crl.get());
    for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
      files.revoked.emplace(
          issuer, DerOf(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(revoked, i))));
    }
  }
  return files;
}

absl::Status ClientCertificates::Reload() {
  H5M_ASSIGN_OR_RETURN(Files files, Read());
  {
    absl::MutexLock lock(&mutex_);
    if (files.authority_pem != files_.authority_pem) known_.Forget();  // Issuers have other bytes.
    files_ = std::move(files);
  }
  return absl::OkStatus();
}

std::string ClientCertificates::authority_pem() const {
  absl::MutexLock lock(&mutex_);
  return files_.authority_pem;
}

absl::StatusOr<ClientIdentity> ClientCertificates::Parse(std::string_view pem) const {
  const CertificatePtr certificate(
      PEM_read_bio_X509(ReaderOf(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (certificate == nullptr)
    return absl::UnauthenticatedError("the client's certificate is no PEM");
  std::shared_ptr<const Authorities> authorities;
  {
    absl::MutexLock lock(&mutex_);
    authorities = files_.authorities;
  }
  ClientIdentity identity{.name = "",
                          .issuer = IssuerOf(*authorities, X509_get_issuer_name(certificate.get())),
                          .serial = DerOf(X509_get0_serialNumber(certificate.get())),
                          .expires = TimeOf(X509_get0_notAfter(certificate.get()))};
  for (const NamePattern& pattern : settings_.names) {
    for (const std::string& text : TextsOf(certificate.get(), pattern.field)) {
      identity.name = pattern.NameIn(text);
      if (!identity.name.empty()) return identity;
    }
  }
  return absl::UnauthenticatedError(
      "the client's certificate has no name that fits the server's tls_client_names: ask its "
      "operator");
}

absl::StatusOr<std::shared_ptr<const ClientIdentity>> ClientCertificates::Find(
    std::string_view pem) const {
  const Sha256Digest digest = Sha256(pem);
  std::shared_ptr<const ClientIdentity> identity = known_.Find(digest);
  if (identity == nullptr) {
    H5M_ASSIGN_OR_RETURN(ClientIdentity parsed, Parse(pem));
    identity = std::make_shared<const ClientIdentity>(std::move(parsed));
    known_.Remember(digest, identity, absl::Now());
  }
  H5M_RETURN_IF_ERROR(StillValid(*identity));
  return identity;
}

absl::Status ClientCertificates::StillValid(const ClientIdentity& identity) const {
  if (absl::Now() >= identity.expires) {
    return absl::UnauthenticatedError(
        StrCat("the certificate of \"", identity.name, "\" has expired, at ",
               absl::FormatTime(absl::RFC3339_sec, identity.expires, absl::UTCTimeZone()),
               ": get another one of your site"));
  }
  absl::MutexLock lock(&mutex_);
  if (files_.revoked.contains({identity.issuer, identity.serial})) {
    return absl::UnauthenticatedError(
        StrCat("the certificate of \"", identity.name, "\" was revoked: get another one"));
  }
  return absl::OkStatus();
}

absl::Time ClientCertificates::NextExpiry() const { return known_.NextEnd(absl::Now()); }

}  // namespace h5mirror::server
