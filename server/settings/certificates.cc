#include "server/settings/certificates.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "openssl/err.h"
#include "openssl/rand.h"
#include "server/settings/openssl_pointers.h"

namespace h5mirror::server {
namespace {

absl::Status OpenSslError(std::string_view what) {
  char reason[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, reason, sizeof(reason));
  }
  ERR_clear_error();
  return absl::InternalError(StrCat(what, ": ", reason));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<KeyAndCertificate> ToPem(EVP_PKEY* key, X509* certificate) {
  const BioPtr key_bio(BIO_new(BIO_s_mem()));
  const BioPtr certificate_bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_bio.get(), certificate) != 1) {
    return OpenSslError("write PEM");
  }
  return KeyAndCertificate{TextOf(key_bio.get()), TextOf(certificate_bio.get())};
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError(StrCat("certificate extension \"", value, "\""));
  }
  return absl::OkStatus();
}

absl::Status SetSerial(X509* certificate) {
  // RFC 5280, 4.1.2.2: positive, at most 20 octets.
  const NumberPtr number(BN_new());
  if (number == nullptr || BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return OpenSslError("certificate serial number");
  }
  return absl::OkStatus();
}

// A certificate with all but its extensions and signature.
absl::StatusOr<CertificatePtr> StartCertificate(EVP_PKEY* key, std::string_view common_name,
                                                int valid_days) {
  CertificatePtr certificate(X509_new());
  if (certificate == nullptr) return OpenSslError("make a certificate");
  H5M_RETURN_IF_ERROR(SetSerial(certificate.get()));
  const std::string name(common_name);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  // An hour back, for clients whose clock is a little behind.
  if (X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(certificate.get()), valid_days, 0, nullptr) == nullptr ||
      X509_set_pubkey(certificate.get(), key) != 1 ||
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1) {
    return OpenSslError("fill a certificate");
  }
  return certificate;
}

absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    unsigned char address[16];
    const bool is_ip = inet_pton(AF_INET, host.c_str(), address) == 1 ||
                       inet_pton(AF_INET6, host.c_str(), address) == 1;
    const bool is_name =
        !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
          return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
                 c == '*' || c == '_';
        });
    if (!is_ip && !is_name) {
      return absl::InvalidArgumentError(
          StrCat("host \"", host, "\" is neither a host name nor an IP address"));
    }
    StrAppend(&names, names.empty() ? "" : ",", is_ip ? "IP:" : "DNS:", host);
  }
  return names;
}

absl::Status Sign(X509* certificate, EVP_PKEY* key) {
  return X509_sign(certificate, key, EVP_sha256()) > 0 ? absl::OkStatus()
                                                       : OpenSslError("sign a certificate");
}

// How many a PEM file begins.
int CountCertificates(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  int count = 0;
  for (size_t at = pem.find(kBegin); at != pem.npos; at = pem.find(kBegin, at + 1)) ++count;
  return count;
}

}  // namespace

absl::StatusOr<KeyAndCertificate> MakeAuthority(std::string_view common_name, int valid_days) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("make a key");
  H5M_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                       StartCertificate(key.get(), common_name, valid_days));
  X509* self = certificate.get();
  if (X509_set_issuer_name(self, X509_get_subject_name(self)) != 1) return OpenSslError("issuer");
  H5M_RETURN_IF_ERROR(
      AddExtension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  H5M_RETURN_IF_ERROR(AddExtension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign"));
  H5M_RETURN_IF_ERROR(AddExtension(self, self, NID_subject_key_identifier, "hash"));
  H5M_RETURN_IF_ERROR(Sign(self, key.get()));
  return ToPem(key.get(), self);
}

absl::StatusOr<KeyAndCertificate> MakeServerCertificate(const KeyAndCertificate& authority,
                                                        const std::vector<std::string>& hosts,
                                                        int valid_days) {
  H5M_ASSIGN_OR_RETURN(const std::string names, AlternativeNames(hosts));
  const BioPtr key_bio(BIO_new_mem_buf(authority.key_pem.data(), -1));
  const BioPtr issuer_bio(BIO_new_mem_buf(authority.certificate_pem.data(), -1));
  const KeyPtr issuer_key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  const CertificatePtr issuer(PEM_read_bio_X509(issuer_bio.get(), nullptr, nullptr, nullptr));
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (issuer_key == nullptr || issuer == nullptr || key == nullptr) {
    return OpenSslError("read the authority");
  }
  H5M_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                       StartCertificate(key.get(), "h5mirrord", valid_days));
  X509* self = certificate.get();
  if (X509_set_issuer_name(self, X509_get_subject_name(issuer.get())) != 1) {
    return OpenSslError("issuer");
  }
  H5M_RETURN_IF_ERROR(AddExtension(self, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  H5M_RETURN_IF_ERROR(AddExtension(self, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  H5M_RETURN_IF_ERROR(AddExtension(self, issuer.get(), NID_ext_key_usage, "serverAuth"));
  H5M_RETURN_IF_ERROR(AddExtension(self, issuer.get(), NID_subject_key_identifier, "hash"));
  H5M_RETURN_IF_ERROR(AddExtension(self, issuer.get(), NID_authority_key_identifier, "keyid"));
  H5M_RETURN_IF_ERROR(AddExtension(self, issuer.get(), NID_subject_alt_name, names));
  H5M_RETURN_IF_ERROR(Sign(self, issuer_key.get()));
  return ToPem(key.get(), self);
}

absl::StatusOr<std::vector<std::string>> HostsOf(const std::string& certificate_pem) {
  const BioPtr bio = ReaderOf(certificate_pem);
  const CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return absl::InvalidArgumentError("the certificate is no PEM");
  const std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      const auto* text = ASN1_STRING_get0_data(name->d.dNSName);
      hosts.emplace_back(reinterpret_cast<const char*>(text), ASN1_STRING_length(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      char text[INET6_ADDRSTRLEN] = {};
      const int size = ASN1_STRING_length(name->d.iPAddress);
      const int family = size == 4 ? AF_INET : AF_INET6;
      if (size != 4 && size != 16) continue;
      if (inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text)) !=
          nullptr) {
        hosts.emplace_back(text);
      }
    }
  }
  return hosts;
}

absl::Status CheckPair(const KeyAndCertificate& pair) {
  const int listed = CountCertificates(pair.certificate_pem);
  const BioPtr key_bio = ReaderOf(pair.key_pem);
  const BioPtr certificate_bio = ReaderOf(pair.certificate_pem);
  const KeyPtr key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  const CertificatePtr certificate(
      PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
  int complete = certificate == nullptr ? 0 : 1;
  while (CertificatePtr(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr))) {
    ++complete;
  }
  absl::Status status;
  if (certificate == nullptr) {
    status = absl::InvalidArgumentError("the certificate is no PEM");
  } else if (complete != listed) {
    status = absl::InvalidArgumentError(StrCat("certificate ", complete + 1, " of the chain's ",
                                               listed, " is not whole: was it being written?"));
  } else if (key == nullptr) {
    status = absl::InvalidArgumentError("the key is no PEM without a pass phrase");
  } else if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    status = absl::InvalidArgumentError("the key is not that of the certificate");
  } else if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    status = absl::InvalidArgumentError("the certificate has expired");
  }
  ERR_clear_error();
  return status;
}

std::vector<std::string> LocalHostNames() {
  std::vector<std::string> names = {"localhost"};
  const auto add = [&names](std::string name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  };
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) == 0) {
    add(host);
    addrinfo hints{};
    hints.ai_flags = AI_CANONNAME;
    addrinfo* found = nullptr;
    if (getaddrinfo(host, nullptr, &hints, &found) == 0) {
      if (found->ai_canonname != nullptr) add(found->ai_canonname);
      freeaddrinfo(found);
    }
  }
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return names;
  const absl::Cleanup freer = [interfaces] { freeifaddrs(interfaces); };
  for (const ifaddrs* entry = interfaces; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST] = {};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(entry->ifa_addr, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    // A link-local address ("fe80::1%eth0") means something else on every link.
    if (std::string_view(text).find('%') == std::string_view::npos) add(text);
  }
  return names;
}

}  // namespace h5mirror::server
