// The command line of h5mirrord.
#ifndef H5MIRROR_SERVER_FLAGS_H_
#define H5MIRROR_SERVER_FLAGS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "server/settings/config.h"
#include "server/settings/init.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

// Exit codes of h5mirrord; --help and h5mirrord(8) list them.
enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,        // or `access check` lacks the right, or `notify test` reaches not all
  kUsage = 2,         // command line, configuration, certificate or tokens
  kNoRoot = 3,        // the root is missing or no directory
  kRootReadOnly = 4,  // the root cannot be written
  kRootInUse = 5,     // another process serves it, or it has a newer format
  kCannotListen = 6,
  kStoppedEarly = 7,  // stop_timeout passed, or a second SIGTERM: some work was not finished
  kFenced = 8,        // the root's file system says that this server must write no more
  kGivenUp = 9,       // the other servers of the cluster have gone on without this one
};

enum class Verb {
  kServe,
  kEmbedded,
  kCheckConfig,
  kInit,
  kTokenAdd,
  kTokenList,
  kTokenRemove,
  kTokenRotate,
  kAccessCheck,
  kNotifyTest,
  kRestoreRoot,
};

// The arguments of `h5mirrord restore-root`: server/restore_root_verb.h.
struct RestoreRootRequest {
  std::string archive;  // its URL
  std::filesystem::path root;
  std::optional<std::string> cell;  // of an archive of a cluster, one alone; unset: all
  std::vector<std::string> files;   // globs; empty: all
  uint32_t umask_bits = 0027;
  bool is_dry_run = false;
  bool takes_over = false;
  bool skips_damaged = false;
  bool json = false;
};

// The question of `access check`: may this user do this with this file?
struct AccessQuestion {
  std::string user;  // "anna", "unix:anna", "token:anna"
  std::string file;
  std::string right;  // empty: which rights there are
  // The file's owner, "unix:anna" or "nobody"; empty: the owner recorded in the root.
  std::string owner;
};

struct Flags {
  Verb verb = Verb::kServe;
  // kServe, kCheckConfig, kAccessCheck, kNotifyTest: from the file, the environment and the flags,
  // in this order.
  std::vector<Setting> settings;
  std::filesystem::path config_file;  // the file of `settings`; empty: there is none
  std::filesystem::path port_file;    // empty: none
  // kEmbedded: the head of the one file; settings are the command line's alone.
  std::filesystem::path embedded_file;
  // kInit.
  InitOptions init;
  // kToken...
  std::filesystem::path tokens_file;
  std::string token_name;
  std::string token_rights;
  TokenLimits token_limits;
  // kAccessCheck.
  AccessQuestion question;
  // kRestoreRoot.
  RestoreRootRequest restore;
};

// The result of parsing: flags, or an exit code, after --help or an error that was printed.
struct ParsedFlags {
  Flags flags;
  std::optional<ExitCode> exit;
};

ParsedFlags ParseFlags(int argc, char** argv);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_FLAGS_H_
