#include "server/door/server_certificate.h"

#include <atomic>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/settings/secret_file.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// The file that the setting `key` names.
absl::StatusOr<std::string> ReadNamed(std::string_view key, const std::filesystem::path& path) {
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), ToAbsl(StrCat(key, " = \"", path.string(),
                                                          "\": ", ToStd(text.status().message()))));
}

}  // namespace

// One port's part of the pair.
class ServerCertificate::Port {
 public:
  explicit Port(const ServerCertificate& certificate) : certificate_(certificate) {}

  // gRPC's callback before each handshake, which it calls one at a time for a port.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* port, grpc_ssl_server_certificate_config** config) {
    return static_cast<Port*>(port)->Fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    const Pair pair = certificate_.pair();
    if (pair.generation == generation_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pem = {pair.pem.key_pem.c_str(),
                                            pair.pem.certificate_pem.c_str()};
    // Roots must be given. They count for nothing where no client is asked for a certificate.
    const char* const roots = pair.client_authority_pem.empty() ? pair.pem.certificate_pem.c_str()
                                                                : pair.client_authority_pem.c_str();
    *config = grpc_ssl_server_certificate_config_create(roots, &pem, 1);
    generation_ = pair.generation;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const ServerCertificate& certificate_;
  std::atomic<uint64_t> generation_ = 0;
};

ServerCertificate::ServerCertificate(std::filesystem::path certificate, std::filesystem::path key,
                                     const ClientCertificates* clients)
    : certificate_path_(std::move(certificate)), key_path_(std::move(key)), clients_(clients) {}

ServerCertificate::~ServerCertificate() = default;

absl::StatusOr<std::unique_ptr<ServerCertificate>> ServerCertificate::Load(
    const std::filesystem::path& certificate, const std::filesystem::path& key,
    const ClientCertificates* clients) {
  auto loaded = absl::WrapUnique(new ServerCertificate(certificate, key, clients));
  H5M_ASSIGN_OR_RETURN(KeyAndCertificate pem, loaded->Read());
  absl::MutexLock lock(&loaded->mutex_);
  loaded->pair_.pem = std::move(pem);
  loaded->pair_.client_authority_pem = loaded->ClientAuthority();
  return loaded;
}

absl::StatusOr<KeyAndCertificate> ServerCertificate::Read() const {
  KeyAndCertificate pem;
  H5M_ASSIGN_OR_RETURN(pem.certificate_pem, ReadNamed("tls_cert", certificate_path_));
  H5M_ASSIGN_OR_RETURN(pem.key_pem, ReadNamed("tls_key", key_path_));
  if (const absl::Status checked = CheckPair(pem); !checked.ok()) {
    return absl::InvalidArgumentError(StrCat("tls_cert = \"", certificate_path_.string(),
                                             "\", tls_key = \"", key_path_.string(),
                                             "\": ", checked.message(),
                                             "; give the two files of one pair, as h5mirrord init "
                                             "makes them"));
  }
  return pem;
}

void ServerCertificate::WarnIfOthersReadKey() const {
  using std::filesystem::perms;
  std::error_code error;
  const perms mode = std::filesystem::status(key_path_, error).permissions();
  if (error || (mode & perms::others_all) == perms::none) return;
  spdlog::warn(
      "tls_key = \"{}\": every user of this machine can read or write the server's private key, "
      "and "
      "stand in for the server: chmod o= it, then renew the pair (h5mirrord init makes one)",
      key_path_.string());
}

std::string ServerCertificate::ClientAuthority() const {
  return clients_ == nullptr ? "" : clients_->authority_pem();
}

absl::Status ServerCertificate::Reload() {
  absl::StatusOr<KeyAndCertificate> pem = Read();
  absl::MutexLock lock(&mutex_);
  if (!pem.ok()) {
    if (const std::string error = pem.status().ToString(); error != last_error_) {
      last_error_ = error;
      spdlog::error("the certificate in use stays: {}", error);
    }
    return pem.status();
  }
  last_error_.clear();
  std::string client_authority = ClientAuthority();
  const bool is_same = pem->key_pem == pair_.pem.key_pem &&
                       pem->certificate_pem == pair_.pem.certificate_pem &&
                       client_authority == pair_.client_authority_pem;
  if (is_same) return absl::OkStatus();
  pair_.pem = *std::move(pem);
  pair_.client_authority_pem = std::move(client_authority);
  ++pair_.generation;
  spdlog::info("took the renewed certificate of {}", certificate_path_.string());
  WarnIfOthersReadKey();
  return absl::OkStatus();
}

ServerCertificate::Pair ServerCertificate::pair() const {
  absl::MutexLock lock(&mutex_);
  return pair_;
}

grpc_server_credentials* ServerCertificate::MakePortCredentials() {
  // Each port has its own: that a pair is unchanged is said of one port.
  Port* port;
  {
    absl::MutexLock lock(&mutex_);
    port = ports_.emplace_back(std::make_unique<Port>(*this)).get();
  }
  return grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          clients_ == nullptr ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                              : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY,
          &Port::Fetch, port));
}

}  // namespace h5mirror::server
