#include "server/testing/client_certificate.h"

#include <gtest/gtest.h>

#include <memory>

#include "server/settings/openssl_pointers.h"

namespace h5mirror::server {
namespace {

using NamePtr = std::unique_ptr<X509_NAME, Freer<X509_NAME_free>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, Freer<ASN1_INTEGER_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, Freer<ASN1_TIME_free>>;

constexpr long kDay = 24 * 3600;

template <typename Write>
std::string Pem(const Write& write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(write(bio.get()), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

struct Authority {
  explicit Authority(const KeyAndCertificate& pem)
      : certificate(
            PEM_read_bio_X509(ReaderOf(pem.certificate_pem).get(), nullptr, nullptr, nullptr)),
        key(PEM_read_bio_PrivateKey(ReaderOf(pem.key_pem).get(), nullptr, nullptr, nullptr)) {}

  const CertificatePtr certificate;
  const KeyPtr key;
};

void Add(X509* certificate, int id, const std::string& value) {
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str()));
  ASSERT_NE(extension, nullptr) << value;
  ASSERT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

// The same name with texts of another type, as some tools write it.
NamePtr InOtherBytes(const X509_NAME* name) {
  NamePtr other(X509_NAME_dup(name));
  for (int i = 0; i < X509_NAME_entry_count(other.get()); ++i) {
    X509_NAME_ENTRY* const entry = X509_NAME_get_entry(other.get(), i);
    const ASN1_STRING* const text = X509_NAME_ENTRY_get_data(entry);
    EXPECT_EQ(ASN1_STRING_type(text), V_ASN1_UTF8STRING);
    const std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                            static_cast<size_t>(ASN1_STRING_length(text)));
    X509_NAME_ENTRY_set_data(entry, V_ASN1_PRINTABLESTRING,
                             reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size()));
  }
  return other;
}

}  // namespace

KeyAndCertificate MakeClientCertificate(const KeyAndCertificate& authority,
                                        const ClientCertificateRequest& request) {
  const Authority signer(authority);
  const KeyPtr key(EVP_EC_gen("P-256"));
  const CertificatePtr certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), request.serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), request.valid_days * kDay);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(request.common_name.data()),
                             static_cast<int>(request.common_name.size()), -1, 0);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(signer.certificate.get()));
  X509_set_pubkey(certificate.get(), key.get());
  Add(certificate.get(), NID_ext_key_usage, "clientAuth");
  if (!request.alternative_names.empty()) {
    Add(certificate.get(), NID_subject_alt_name, request.alternative_names);
  }
  EXPECT_GT(X509_sign(certificate.get(), signer.key.get(), EVP_sha256()), 0);
  return {
      .key_pem = Pem([&](BIO* bio) {
        return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
      }),
      .certificate_pem = Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); })};
}

std::string MakeRevocationList(const KeyAndCertificate& authority,
                               const std::vector<long>& serials) {
  const Authority signer(authority);
  const CrlPtr list(X509_CRL_new());
  X509_CRL_set_version(list.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list.get(),
                           InOtherBytes(X509_get_subject_name(signer.certificate.get())).get());
  const TimePtr now(X509_gmtime_adj(nullptr, 0));
  const TimePtr next(X509_gmtime_adj(nullptr, kDay));
  X509_CRL_set1_lastUpdate(list.get(), now.get());
  X509_CRL_set1_nextUpdate(list.get(), next.get());
  for (const long serial : serials) {
    const IntegerPtr number(ASN1_INTEGER_new());
    ASN1_INTEGER_set(number.get(), serial);
    X509_REVOKED* const revoked = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(revoked, number.get());
    X509_REVOKED_set_revocationDate(revoked, now.get());
    X509_CRL_add0_revoked(list.get(), revoked);
  }
  EXPECT_GT(X509_CRL_sign(list.get(), signer.key.get(), EVP_sha256()), 0);
  return Pem([&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, list.get()); });
}

}  // namespace h5mirror::server
