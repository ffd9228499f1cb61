#include "cli/verbs/scratch_check.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/exec/exec_environment.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/verbs/own_directory.h"
#include "sync/compare.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// The directory for caches of this user, or for temporary files of all.
fs::path CacheDirectory() {
  const std::string cache = FromEnvironment("XDG_CACHE_HOME");
  if (!cache.empty()) return cache;
  const std::string home = FromEnvironment("HOME");
  if (!home.empty()) return fs::path(home) / ".cache";
  return {};
}

absl::StatusOr<fs::path> MakeCache() {
  const fs::path cache = CacheDirectory();
  if (cache.empty()) {
    const std::string around = FromEnvironment("TMPDIR");
    const fs::path own =
        fs::path(around.empty() ? "/tmp" : around) / StrCat("h5mirror-", geteuid());
    H5M_RETURN_IF_ERROR(MakeOwnDirectory(own));
    return own;
  }
  std::error_code error;
  fs::create_directories(cache, error);
  if (error) return ErrnoToStatus(error.value(), StrCat("make ", cache.string()));
  H5M_RETURN_IF_ERROR(CheckKeepsFiles(cache));
  return cache;
}

absl::StatusOr<fs::path> MakeScratchPlace() {
  H5M_ASSIGN_OR_RETURN(const fs::path cache, MakeCache());
  const fs::path own = cache / "h5mirror";
  H5M_RETURN_IF_ERROR(MakeOwnDirectory(own));
  H5M_RETURN_IF_ERROR(MakeOwnDirectory(own / "doctor"));
  const fs::path scratch = own / "doctor" / "scratch.h5";
  H5M_RETURN_IF_ERROR(CheckOwnFile(scratch));
  return scratch;
}

// Where all may write, as in /tmp, another user may have been there first.
absl::StatusOr<fs::path> ScratchPath() {
  absl::StatusOr<fs::path> path = MakeScratchPlace();
  if (!absl::IsFailedPrecondition(path.status())) return path;
  return absl::FailedPreconditionError(
      StrCat(path.status().message(),
             ". Remove it, set XDG_CACHE_HOME to a directory of yours, or take --no-scratch"));
}

std::string ScratchName() {
  const v1::Writer self = LocalWriter();
  const std::string user = absl::StrReplaceAll(self.claimed_user(), {{"/", "_"}, {";", "_"}});
  return StrCat("h5mirror-doctor/", self.host(), "-", user, ".h5");
}

absl::Status AtStep(std::string_view step, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(step, ": ", status.message()));
}

// A program goes on when its mirror does not; the record says why.
absl::Status CheckRecord(const fs::path& path) {
  const absl::StatusOr<LocalRecord> record = ReadLocalRecord(path);
  if (!record.ok()) return AtStep("the driver left no record", record.status());
  if (record->state == RecordState::kClean) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("written, but the mirror is ", RecordStateName(record->state), ": ", record->detail));
}

// The driver's config for the scratch file, with the server and credentials of this run.
absl::StatusOr<std::string> DriverConfig(Context& context, rpc::Client& client,
                                         const std::string& name, const std::string& directory) {
  ExecEnvironmentRequest request;
  request.client = context.flags().client;
  request.client.server = client.options().server;
  request.root = directory;
  // All that a user's client.toml may say of names and rules is overridden: this file is ours.
  request.config = StrCat("mode=mirror;include=;exclude=;name=", name,
                          ";ack_commit=durable;comment=h5mirror doctor");
  H5M_ASSIGN_OR_RETURN(EnvironmentChanges changes,
                       ExecEnvironment(request, [](const char*) { return std::string(); }));
  return changes["HDF5_DRIVER_CONFIG"].value_or("");
}

}  // namespace

absl::StatusOr<ScratchResult> CheckScratchFile(Context& context, rpc::Client& client,
                                               const LibHdf5& library,
                                               const std::string& plugin_dir) {
  ScratchResult result;
  result.name = ScratchName();
  H5M_ASSIGN_OR_RETURN(const fs::path path, ScratchPath());
  H5M_ASSIGN_OR_RETURN(const std::string config,
                       DriverConfig(context, client, result.name, path.parent_path().string()));
  const absl::Time start = absl::Now();
  const absl::Status wrote =
      Probe({"scratch", library.path, path.string()}, DriverEnvironment(plugin_dir, config));
  if (!wrote.ok()) return AtStep("write and read back", wrote);
  const absl::Time end = absl::Now();
  result.took = end - start;
  H5M_RETURN_IF_ERROR(CheckRecord(path));
  H5M_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(path, FileLock::kShared));
  Progress progress(context.streams(), "comparing", file.size_bytes());
  LocalBlocks blocks(file.fd(), file.size_bytes(), path.string());
  Comparison comparison(client, result.name, 0, blocks, progress);
  const absl::Status compared = comparison.Coarse();
  if (!compared.ok()) return AtStep("compare with the server", compared);
  const v1::Version& version = comparison.version();
  const absl::Time made = FromProto(version.server_time());
  if (!comparison.equal()) {
    H5M_ASSIGN_OR_RETURN(const uint64_t first, comparison.FindFirst());
    return absl::DataLossError(StrCat("the server's ", result.name, "@", version.version(),
                                      " differs from ", path.string(), " at offset ", first));
  }
  result.version = version.version();
  // The version was made between start and end; outside of that the clocks differ.
  result.clock_skew = made < start ? made - start : made > end ? made - end : absl::ZeroDuration();
  return result;
}

}  // namespace h5mirror::tools
