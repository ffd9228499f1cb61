#include "server/http/http_caller.h"

#include <arpa/inet.h>
#include <string.h>

#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "openssl/err.h"
#include "server/http/message.h"
#include "server/settings/openssl_pointers.h"

namespace h5mirror::server {
namespace {

// The most certificates from the client's own up to the authority's. OpenSSL's own bound is 100.
constexpr size_t kChainMax = 10;

using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;

struct StackFreer {
  // The certificates stay.
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using StackPtr = std::unique_ptr<STACK_OF(X509), StackFreer>;

absl::Status BadCertificate(std::string_view why) {
  ERR_clear_error();
  return absl::UnauthenticatedError(StrCat("the client's certificate does not count: ", why));
}

CertificatePtr FromDer(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  return CertificatePtr(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
}

// nullptr: OpenSSL has no memory.
StorePtr StoreOf(const std::string& authority_pem) {
  StorePtr store(X509_STORE_new());
  if (store == nullptr) return nullptr;
  const BioPtr reader = ReaderOf(authority_pem);
  for (;;) {
    const CertificatePtr each(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (each == nullptr) break;
    X509_STORE_add_cert(store.get(), each.get());
  }
  ERR_clear_error();  // The end of the text is one.
  return store;
}

std::string PemOf(X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (out == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

}  // namespace

std::string GrpcPeerText(const Peer& peer) {
  if (peer.kind == Peer::Kind::kUnixSocket) return "unix:";
  const std::string host = peer.Name();
  return host.find(':') == std::string::npos ? StrCat("ipv4:", host, ":", peer.port)
                                             : StrCat("ipv6:[", host, "]:", peer.port);
}

absl::StatusOr<std::string> VerifyClientChain(const std::vector<std::string>& certificates,
                                              const ClientCertificates& clients) {
  if (certificates.empty() || certificates.size() > kChainMax) {
    return BadCertificate("its chain is empty or too long");
  }
  std::vector<CertificatePtr> chain;
  for (const std::string& der : certificates) {
    chain.push_back(FromDer(der));
    if (chain.back() == nullptr) return BadCertificate("it is malformed");
  }
  const StackPtr between(sk_X509_new_null());
  const StorePtr store = StoreOf(clients.authority_pem());
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (between == nullptr || store == nullptr || context == nullptr) {
    return absl::ResourceExhaustedError("no memory to verify a certificate");
  }
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between.get(), chain[i].get());
  if (X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(), between.get()) != 1) {
    return BadCertificate("it cannot be verified");
  }
  X509_STORE_CTX_set_default(context.get(), "ssl_client");
  if (X509_verify_cert(context.get()) != 1) {
    return BadCertificate(X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
  }
  std::string pem = PemOf(chain[0].get());
  if (pem.empty()) return BadCertificate("it cannot be read");
  return pem;
}

std::optional<std::string_view> HttpCallSource::authorization() const {
  if (!identity_.authorization) return std::nullopt;
  return std::string_view(*identity_.authorization);
}

std::optional<uid_t> HttpCallSource::uid() const {
  if (identity_.peer.kind != Peer::Kind::kUnixSocket) return std::nullopt;
  return identity_.peer.uid;
}

int HttpCallSource::HttpStatusOf(const absl::Status& refusal) const { return ErrorCodeOf(refusal); }

void HttpCallSource::Await(const Authenticator& authenticator, std::function<void()> then) const {
  if (!authenticator.KnowsCaller(authorization())) {
    return authenticator.AwaitCaller(*authorization(), std::move(then));
  }
  const std::optional<uid_t> user = uid();
  if (!user || !authenticator.has_rules() || authenticator.users().Peek(*user)) return then();
  authenticator.users().Await(*user, std::move(then));
}

absl::StatusOr<Principal> HttpCallSource::Authenticate(const Authenticator& authenticator) const {
  std::string pem;
  if (clients_ != nullptr && !identity_.certificates.empty()) {
    H5M_ASSIGN_OR_RETURN(pem, VerifyClientChain(identity_.certificates, *clients_));
  }
  const std::string peer_text = peer();
  absl::StatusOr<Principal> principal = authenticator.Authenticate(
      authorization(), {.uid = uid(), .grpc_peer = peer_text, .certificate_pem = pem});
  if (principal.ok()) admit_();
  const bool has_none = absl::IsUnauthenticated(principal.status()) && !authorization();
  if (has_none && authenticator.wants_tokens()) {
    return absl::UnauthenticatedError(
        StrCat(principal.status().message(),
               "; a program that speaks HTTP sends the header `Authorization: Bearer TOKEN`"));
  }
  return principal;
}

}  // namespace h5mirror::server
