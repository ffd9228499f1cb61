#include "cli/exec/exec_lost.h"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "rpc/client.h"

namespace h5mirror::tools {
namespace {

constexpr int kAskedMax = 100;
constexpr char kEnded[] = "its program ended without closing it";

// `ca` and `token` of the config string, where flags do not say otherwise. One that is a file holds
// paths of its own, and is left to the driver.
rpc::ClientSettings SettingsOf(const LostFilesRequest& request) {
  rpc::ClientSettings settings = request.client;
  const bool is_file = absl::StartsWith(absl::StripLeadingAsciiWhitespace(request.config), "@");
  for (absl::string_view item : absl::StrSplit(request.config, ';')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(item, absl::MaxSplits('=', 1));
    const std::string key(absl::StripAsciiWhitespace(parts.first));
    const std::string value(absl::StripAsciiWhitespace(parts.second));
    if (is_file || value.empty()) continue;
    if (key == "ca" && !request.client.ca.has_value()) settings.ca = value;
    if (key == "token" && !request.client.token.has_value()) settings.token = value;
  }
  return settings;
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// The servers of this report, each connected to once.
class Servers {
 public:
  explicit Servers(const LostFilesRequest& request)
      : settings_(SettingsOf(request)), timeout_(request.timeout) {
    const absl::StatusOr<rpc::ClientOptions> usual = rpc::ResolveClientOptions({});
    if (usual.ok()) usual_ = usual->server;
  }

  absl::StatusOr<v1::FileStatus> Ask(const std::string& server, const std::string& name) {
    auto found = clients_.find(server);
    if (found == clients_.end()) found = clients_.emplace(server, Connect(server)).first;
    H5M_RETURN_IF_ERROR(found->second.status());
    v1::GetFileRequest request;
    request.set_name(name);
    absl::StatusOr<v1::FileStatus> status = (*found->second)->GetFile(request, timeout_);
    // The server would fail in the same way for the next file, after the same wait.
    if (!status.ok() && !absl::IsNotFound(status.status())) found->second = status.status();
    return status;
  }

  // "--server HOST ", unless the tools would take that one by themselves.
  std::string Flag(const std::string& server) const {
    return IsSameServer(server, usual_) ? "" : StrCat("--server ", ShellWord(server), " ");
  }

 private:
  absl::StatusOr<std::unique_ptr<rpc::Client>> Connect(const std::string& server) const {
    rpc::ClientSettings settings = settings_;
    settings.server = server;
    H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions options, rpc::ResolveClientOptions(settings));
    return rpc::Client::Connect(options, timeout_);
  }

  const rpc::ClientSettings settings_;
  const absl::Duration timeout_;
  std::string usual_;
  std::map<std::string, absl::StatusOr<std::unique_ptr<rpc::Client>>> clients_;
};

void TellEmbedded(FileUse& use) {
  use.detail = StrCat(kEnded, "; its next open takes it back to its last durable cut");
  use.way_out = StrCat("h5mirror log ", ShellWord(use.file));
}

void Tell(const absl::StatusOr<v1::FileStatus>& status, const std::string& flag, FileUse& use) {
  const std::string path = ShellWord(use.file);
  const std::string why = use.detail.empty() ? "" : StrCat(" (", use.detail, ")");
  if (absl::IsNotFound(status.status())) {
    use.detail = StrCat(kEnded, why, "; the server has nothing of it");
    use.way_out = StrCat("h5mirror ", flag, "push --any ", path);
  } else if (!status.ok()) {
    use.detail = StrCat(kEnded, why, "; its server was not asked: ", status.status().message());
    use.way_out = StrCat("h5mirror ", flag, "status ", path);
  } else {
    use.cut = status->last_cut();
    use.version = status->newest_version().version();
    use.detail = StrCat(kEnded, why, "; the server has it up to cut ", use.cut);
    use.way_out = StrCat("h5mirror ", flag, "recover ", path);
  }
  if (!IsThere(use.file)) use.way_out.clear();  // mode=remote
}

}  // namespace

void AskAboutLostFiles(const LostFilesRequest& request, ExecReport& report) {
  std::unique_ptr<Servers> servers;
  int asked = 0;
  for (FileUse& use : report.files) {
    if (!use.writer_lost()) continue;
    if (use.server == kEmbeddedServer) {
      TellEmbedded(use);
      continue;
    }
    if (servers == nullptr) servers = std::make_unique<Servers>(request);
    const absl::StatusOr<v1::FileStatus> status =
        ++asked <= kAskedMax ? servers->Ask(use.server, use.name)
                             : absl::ResourceExhaustedError(
                                   StrCat("that was done for the first ", kAskedMax, " files"));
    Tell(status, servers->Flag(use.server), use);
  }
}

}  // namespace h5mirror::tools
