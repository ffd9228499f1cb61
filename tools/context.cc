#include "tools/context.h"

#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/text.h"

namespace h5mirror::tools {

absl::StatusOr<rpc::ClientOptions> Context::Options(const std::string& recorded_server) const {
  rpc::ClientSettings settings = flags_.client;
  if (!settings.server.has_value() && !recorded_server.empty()) settings.server = recorded_server;
  return rpc::ResolveClientOptions(settings);
}

absl::StatusOr<rpc::Client*> Context::Connect(const std::string& recorded_server) {
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions options, Options(recorded_server));
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
