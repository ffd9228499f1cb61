// The context of every verb: the global flags, its streams, and the connection to the server.
#ifndef H5MIRROR_CLI_CONTEXT_CONTEXT_H_
#define H5MIRROR_CLI_CONTEXT_CONTEXT_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/embedded_server.h"
#include "cli/output/json.h"
#include "cli/output/streams.h"
#include "cli/output/table.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::tools {

struct FileArg;

// Flags that all verbs understand, before or after the verb.
struct GlobalFlags {
  rpc::ClientSettings client;
  double timeout_seconds = 10;  // for the connection; > 0
  double refused_seconds = 2;   // the same, where nothing listens at the address
  bool json = false;
  // Beside those of the configuration (rpc/configured_servers.h): servers that a record may name.
  std::vector<std::string> own_servers;
  std::vector<std::string> arguments;  // of the program; empty: it has other flags than h5mirror
  std::string plugin_dir;              // empty: found, see cli/process/install_dirs.h
};

// Not thread-safe. `flags` and `streams` must outlive it; flags are read when they are needed,
// so they may still be parsed after the constructor.
class Context {
 public:
  Context(const GlobalFlags& flags, Streams& streams) : flags_(flags), streams_(streams) {}

  const GlobalFlags& flags() const { return flags_; }
  Streams& streams() { return streams_; }
  bool json() const { return flags_.json; }

  // Where the server is: --server, else environment and files.
  absl::StatusOr<rpc::ClientOptions> Options() const;
  // Where the mirror of `file` is: --server, else the server of its record, if that is one of the
  // user's own.
  // Errors: kFailedPrecondition it is not: nothing is sent there, and the message tells the way.
  absl::StatusOr<rpc::ClientOptions> Options(const FileArg& file) const;
  // A connection to it, kept for the next call; owned by the context.
  absl::StatusOr<rpc::Client*> Connect();
  // If the record names a server that the user has not configured, and the configured server has
  // the same file, the file has moved there. Then a note says so.
  absl::StatusOr<rpc::Client*> Connect(const FileArg& file);

  // A document on standard output.
  void Print(const Json& json) { streams_.out << Dump(json) << "\n"; }
  // A result for people, on standard output; nothing with --json.
  void Say(std::string_view line);
  void Print(Table& table) { table.Print(streams_.out, streams_.out_sink, streams_.width_columns); }
  // "h5mirror: <message>", always one line, on standard error.
  void Note(std::string_view message);

 private:
  const GlobalFlags& flags_;
  Streams& streams_;
  absl::StatusOr<rpc::ClientOptions> Resolve(const rpc::ClientSettings& settings) const;
  // The server, or the cluster as configured, that the file's record means.
  // kFailedPrecondition: it is none of the user's.
  absl::StatusOr<std::string> OwnServerOf(const FileArg& file) const;
  absl::StatusOr<rpc::Client*> ConnectWhereMoved(const FileArg& file);
  absl::StatusOr<rpc::Client*> ClientOf(const rpc::ClientOptions& options);
  // Of a file with its history beside it.
  absl::StatusOr<std::string> StartEmbedded(const std::string& address);

  std::map<std::string, std::unique_ptr<EmbeddedServer>> embedded_;  // by EmbeddedAddress()
  // By server. Destroyed first.
  std::map<std::string, std::unique_ptr<rpc::Client>> clients_;
  std::set<std::string> told_moves_;  // servers of records that have moved
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_CONTEXT_H_
