// h5mirrord: the server. See h5mirrord.8.md.
#include <stdlib.h>

#include <filesystem>
#include <iostream>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/standard_streams.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "ceph/load_module.h"
#include "server/access_check.h"
#include "server/daemon.h"
#include "server/embedded_daemon.h"
#include "server/flags.h"
#include "server/mirror_server.h"
#include "server/notify/notifier.h"
#include "server/restore_root_verb.h"
#include "server/settings/config.h"
#include "server/settings/init.h"
#include "server/settings/root_fencing.h"
#include "server/settings/token_file.h"
#include "server/try_receivers.h"

namespace h5mirror::server {
namespace {

ExitCode Fail(const absl::Status& status) {
  std::cerr << "h5mirrord: " << Printable(ToStd(status.message())) << "\n";
  return absl::IsInvalidArgument(status) ? ExitCode::kUsage : ExitCode::kFailed;
}

ExitCode Init(const Flags& flags) {
  const auto advice = InitDirectory(flags.init);
  if (!advice.ok()) return Fail(advice.status());
  std::cout << *advice;
  return ExitCode::kOk;
}

ExitCode ShowToken(const Flags& flags, const absl::StatusOr<std::string>& token) {
  if (!token.ok()) return Fail(token.status());
  // The token alone on stdout, so that it can be sent into a file.
  std::cout << *token << "\n";
  if (const absl::Status shown = FlushStandardOutput(); !shown.ok()) {
    return Fail(absl::InternalError(StrCat(
        ToStd(shown.message()), ". The token is lost; `h5mirrord token rotate ", flags.token_name,
        " --tokens-file ", flags.tokens_file.string(), "` makes another")));
  }
  std::cerr
      << "This is the only time that the token is shown. Put it into ~/.config/h5mirror/token "
         "(mode 0600) of its user;\na running server learns of it by SIGHUP (systemctl reload "
         "h5mirrord), where its configuration has tokens_file = \""
      << flags.tokens_file.string() << "\".\n";
  return ExitCode::kOk;
}

ExitCode AddOneToken(const Flags& flags) {
  const auto rights = Rights::Parse(flags.token_rights);
  if (!rights.ok()) return Fail(rights.status());
  return ShowToken(flags,
                   AddToken(flags.tokens_file, flags.token_name, *rights, flags.token_limits));
}

ExitCode ListTokens(const Flags& flags) {
  const auto entries = ReadTokenFile(flags.tokens_file);
  if (!entries.ok()) return Fail(entries.status());
  for (const TokenEntry& entry : *entries) {
    std::cout << entry.name << "\t" << entry.rights.ToString() << entry.limits.ToString() << "\n";
  }
  return ExitCode::kOk;
}

ExitCode RemoveOneToken(const Flags& flags) {
  if (const absl::Status status = RemoveToken(flags.tokens_file, flags.token_name); !status.ok()) {
    return Fail(status);
  }
  std::cerr << "A running server forgets it by SIGHUP (systemctl reload h5mirrord).\n";
  return ExitCode::kOk;
}

// Checks the root's place, and that Ceph's module is there if it is needed. Asks no cluster.
absl::Status CheckRoot(const Config& config) {
  if (ceph::IsRootUrl(config.root.native())) return ceph::LoadModule().status();
  return CheckRootFencing(config);
}

ExitCode Serve(const Flags& flags) {
  const auto config = MakeConfig(flags.settings);
  if (!config.ok()) {
    Fail(config.status());
    return ExitCode::kUsage;
  }
  if (flags.verb == Verb::kAccessCheck) return CheckAccess(*config, flags.question);
  if (flags.verb == Verb::kNotifyTest) return TryReceivers(*config);
  if (flags.verb == Verb::kServe) return RunDaemon(*config, flags.port_file, flags.config_file);
  if (flags.verb == Verb::kEmbedded) return RunEmbedded(flags.embedded_file, *config);
  absl::Status status = CheckNamedThings(*config);
  if (status.ok()) status = CheckTools(config->notify);
  if (status.ok()) status = CheckRoot(*config);
  if (!status.ok()) {
    Fail(status);
    return ExitCode::kUsage;
  }
  std::error_code ignored;
  const bool is_here = !ceph::IsRootUrl(config->root.native());
  if (is_here && !std::filesystem::is_directory(config->root, ignored)) {
    std::cerr << "h5mirrord: root = \"" << Printable(config->root.string())
              << "\" is no directory yet: make it before the start\n";
  }
  std::vector<std::string> notices = FindUnreachable(config->access);
  for (std::string& warning : WarningsOf(*config)) notices.push_back(std::move(warning));
  for (std::string& notice : FindUnreachable(config->limits)) notices.push_back(std::move(notice));
  for (std::string& notice : FindUnreachable(config->quotas)) notices.push_back(std::move(notice));
  for (const std::string& notice : notices) {
    std::cerr << "h5mirrord: " << Printable(notice) << "\n";
  }
  std::cout << "OK\n" << DescribeConfig(*config);
  return ExitCode::kOk;
}

ExitCode Main(int argc, char** argv) {
  const ParsedFlags parsed = ParseFlags(argc, argv);
  if (parsed.exit.has_value()) return *parsed.exit;
  switch (parsed.flags.verb) {
    case Verb::kInit:
      return Init(parsed.flags);
    case Verb::kTokenAdd:
      return AddOneToken(parsed.flags);
    case Verb::kTokenList:
      return ListTokens(parsed.flags);
    case Verb::kTokenRemove:
      return RemoveOneToken(parsed.flags);
    case Verb::kTokenRotate:
      return ShowToken(parsed.flags,
                       RotateToken(parsed.flags.tokens_file, parsed.flags.token_name));
    case Verb::kRestoreRoot:
      return RestoreRoot(parsed.flags.restore);
    case Verb::kServe:
    case Verb::kAccessCheck:
    case Verb::kNotifyTest:
    case Verb::kEmbedded:
    case Verb::kCheckConfig:
      return Serve(parsed.flags);
  }
  return ExitCode::kFailed;
}

// kFailed also where what was to be shown is lost.
ExitCode MainWithOutput(int argc, char** argv) {
  const ExitCode code = Main(argc, argv);
  if (code != ExitCode::kOk) return code;
  const absl::Status flushed = FlushStandardOutput();
  return flushed.ok() ? code : Fail(flushed);
}

}  // namespace
}  // namespace h5mirror::server

int main(int argc, char** argv) {
  h5mirror::HoldStandardStreams();
#ifdef NDEBUG
  // Debian builds abseil with its deadlock detector on: every lock of ours and of gRPC's looks
  // into one global graph. Debug builds keep it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  // Large frames arrive in fewer, larger reads; measured in bench/ for gRPC 1.51. A value that
  // the administrator has set is kept.
  setenv("GRPC_EXPERIMENTS", "tcp_rcv_lowat,tcp_frame_size_tuning", /*overwrite=*/0);
  h5mirror::server::BlockSignals();
  return static_cast<int>(h5mirror::server::MainWithOutput(argc, argv));
}
