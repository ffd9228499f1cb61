#include "tools/context.h"

#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/text.h"

namespace h5mirror::tools {

absl::StatusOr<rpc::ClientOptions> Context::Options(const std::string& recorded_server) const {
  rpc::ClientSettings settings = flags_.client;
  if (!settings.server.has_value() && !recorded_server.empty()) settings.server = recorded_server;
  H5M_ASSIGN_OR_RETURN(rpc::ClientOptions options, rpc::ResolveClientOptions(settings));
  if (options.server == kEmbedded) {
    return absl::NotFoundError(
        "there is no server (server = embedded): name a file that has its history beside it "
        "(X.h5.h5m/index)");
  }
  return options;
}

absl::StatusOr<std::string> Context::StartEmbedded(const std::string& address) {
  if (flags_.client.server.has_value() && *flags_.client.server != kEmbedded) {
    return absl::InvalidArgumentError(
        StrCat(PathOfEmbedded(address).string(),
               " has its history beside it, and no server: leave out "
               "--server, or give the name of a file that is not one of this directory"));
  }
  std::unique_ptr<EmbeddedServer>& server = embedded_[address];
  if (server == nullptr) {
    H5M_ASSIGN_OR_RETURN(server, EmbeddedServer::Start(PathOfEmbedded(address),
                                                       absl::Seconds(flags_.timeout_seconds)));
  }
  return server->address();
}

absl::StatusOr<rpc::Client*> Context::Connect(const std::string& recorded_server) {
  rpc::ClientOptions options;
  if (IsEmbeddedAddress(recorded_server)) {
    // Nothing else than the address: a token or a CA is for servers.
    H5M_ASSIGN_OR_RETURN(const std::string address, StartEmbedded(recorded_server));
    H5M_ASSIGN_OR_RETURN(options, rpc::ResolveClientOptionsIn({address, "", ""}, {}));
    options.server = recorded_server;  // For messages; the socket means nothing to anybody.
  } else {
    H5M_ASSIGN_OR_RETURN(options, Options(recorded_server));
  }
  auto found = clients_.find(options.server);
  if (found == clients_.end()) {
    H5M_ASSIGN_OR_RETURN(auto client,
                         rpc::Client::Connect(options, absl::Seconds(flags_.timeout_seconds)));
    found = clients_.emplace(options.server, std::move(client)).first;
  }
  return found->second.get();
}

void Context::Say(std::string_view line) {
  if (!json()) streams_.out << Printable(line) << "\n";
}

void Context::Note(std::string_view message) {
  const std::string line = absl::StrReplaceAll(ToAbsl(message), {{"\n", "; "}});
  streams_.err << "h5mirror: " << Printable(line) << "\n" << std::flush;
}

}  // namespace h5mirror::tools
