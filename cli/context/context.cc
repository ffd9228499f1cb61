#include "cli/context/context.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/hex.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/output/text.h"
#include "rpc/configured_servers.h"
#include "rpc/server_address.h"

namespace h5mirror::tools {

namespace {

constexpr absl::Duration kMovedTimeout = absl::Seconds(10);

std::string CommandWith(const std::string& server, const std::vector<std::string>& arguments) {
  std::string command = StrCat("h5mirror --server ", ShellWord(server));
  for (const std::string& argument : arguments) StrAppend(&command, " ", ShellWord(argument));
  return command;
}

}  // namespace

absl::StatusOr<rpc::ClientOptions> Context::Resolve(const rpc::ClientSettings& settings) const {
  H5M_ASSIGN_OR_RETURN(rpc::ClientOptions options, rpc::ResolveClientOptions(settings));
  if (options.server == kEmbedded) {
    return absl::NotFoundError(
        "there is no server (server = embedded): name a file that has its history beside it "
        "(X.h5.h5m/index)");
  }
  return options;
}

absl::StatusOr<rpc::ClientOptions> Context::Options() const { return Resolve(flags_.client); }

absl::StatusOr<rpc::ClientOptions> Context::Options(const FileArg& file) const {
  rpc::ClientSettings settings = flags_.client;
  if (!settings.server.has_value() && !file.server.empty()) {
    H5M_ASSIGN_OR_RETURN(settings.server, OwnServerOf(file));
    settings.server_origin = StrCat("the record ", RecordPath(file.place()).string());
  }
  return Resolve(settings);
}

// A user with the right to write beside a file could make its record name a server that collects
// tokens and data.
absl::StatusOr<std::string> Context::OwnServerOf(const FileArg& file) const {
  const std::vector<std::string>& more = flags_.own_servers;
  if (auto found = rpc::FindConfigured(more, file.server)) return *std::move(found);
  H5M_ASSIGN_OR_RETURN(std::vector<std::string> own, rpc::ConfiguredServers());
  if (auto found = rpc::FindConfigured(own, file.server)) return *std::move(found);
  own.insert(own.end(), more.begin(), more.end());
  std::string way_out = "--server ADDRESS goes where you say";
  const bool is_address = rpc::ParseServerAddress(file.server).ok() && file.server[0] != '-';
  if (is_address && !flags_.arguments.empty()) {
    way_out = StrCat("to ask it all the same: ", CommandWith(file.server, flags_.arguments));
  }
  return absl::FailedPreconditionError(
      StrCat(file.local.string(), ": its record (", RecordPath(file.place()).string(),
             ") names the server ", file.server, ", which is not one of your configured servers (",
             absl::StrJoin(own, ", "),
             "); nothing was sent there. To trust it, name it in H5MIRROR_SERVER, or as server in "
             "~/.config/h5mirror/client.toml; ",
             way_out));
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

absl::StatusOr<rpc::Client*> Context::Connect() {
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions options, Options());
  return ClientOf(options);
}

absl::StatusOr<rpc::Client*> Context::Connect(const FileArg& file) {
  rpc::ClientOptions options;
  if (IsEmbeddedAddress(file.server)) {
    // Nothing else than the address: a token or a CA is for servers.
    H5M_ASSIGN_OR_RETURN(const std::string address, StartEmbedded(file.server));
    H5M_ASSIGN_OR_RETURN(options, rpc::ResolveClientOptionsIn({address, "", ""}, {}));
    options.server = file.server;  // For messages; the socket means nothing to anybody.
  } else {
    absl::StatusOr<rpc::ClientOptions> own = Options(file);
    if (absl::IsFailedPrecondition(own.status()) && file.record.has_value()) {
      absl::StatusOr<rpc::Client*> moved = ConnectWhereMoved(file);
      return moved.ok() ? moved : own.status();
    }
    H5M_RETURN_IF_ERROR(own.status());
    options = *std::move(own);
  }
  return ClientOf(options);
}

absl::StatusOr<rpc::Client*> Context::ConnectWhereMoved(const FileArg& file) {
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, Connect());
  v1::GetFileRequest request;
  request.set_name(file.name);
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status, client->GetFile(request, kMovedTimeout));
  if (status.file_id() != ToByteString(file.record->file_id)) {
    return absl::NotFoundError("another file has its name there");
  }
  if (told_moves_.insert(file.server).second) {
    Note(StrCat("the record of ", file.local.string(), " names the server ", file.server, "; ",
                client->options().server,
                ", of your configuration, has this file and is asked instead. h5mirror rehome "
                "brings records to it"));
  }
  return client;
}

absl::StatusOr<rpc::Client*> Context::ClientOf(const rpc::ClientOptions& options) {
  auto found = clients_.find(options.server);
  if (found == clients_.end()) {
    H5M_ASSIGN_OR_RETURN(auto client,
                         rpc::Client::Connect(options, absl::Seconds(flags_.timeout_seconds),
                                              absl::Seconds(flags_.refused_seconds)));
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
