// Owners of OpenSSL's objects.
#ifndef H5MIRROR_SERVER_SETTINGS_OPENSSL_POINTERS_H_
#define H5MIRROR_SERVER_SETTINGS_OPENSSL_POINTERS_H_

#include <memory>
#include <string_view>

#include "openssl/bn.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace h5mirror::server {

// A deleter that calls `Free`.
template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, Freer<X509_CRL_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;

// Reads `text`, which must outlive it.
inline BioPtr ReaderOf(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_OPENSSL_POINTERS_H_
