#include "h5perf_serial/mirror_cleanup.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "absl/time/clock.h"
#include "base/local_record.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/child.h"

namespace h5mirror::perf {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kCommandTime = absl::Minutes(2);
// The last session ends on the server a little later than the close returns.
constexpr absl::Duration kLeaseTime = absl::Seconds(15);
constexpr absl::Duration kRetry = absl::Milliseconds(200);
constexpr int kExitRefused = 5;  // of h5mirror: somebody holds the lease

// The value of a key in the driver's configuration; empty: it is not there.
std::string ValueOf(std::string_view config, std::string_view key) {
  while (!config.empty()) {
    const std::string_view item = config.substr(0, config.find(';'));
    if (item.substr(0, key.size()) == key && item.substr(key.size(), 1) == "=") {
      return std::string(item.substr(key.size() + 1));
    }
    config.remove_prefix(std::min(item.size() + 1, config.size()));
  }
  return "";
}

// One generation without data, so that what `rm` keeps for `undelete` is small.
absl::Status WriteEmptyFile(const Driver& driver, const std::string& base) {
  H5M_ASSIGN_OR_RETURN(const hdf5::Handle fapl, hdf5::Own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
  H5M_RETURN_IF_ERROR(SetDriver(driver, base, fapl.get()));
  const std::string name = Hdf5Name(driver, base);
  H5M_ASSIGN_OR_RETURN(
      const hdf5::Handle file,
      hdf5::Own(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl.get()), name));
  return absl::OkStatus();
}

class Cli {
 public:
  Cli(const Driver& driver, std::string server) {
    std::error_code error;
    const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
    command_ = {(own / "h5mirror").string(), "--server", std::move(server)};
    for (const char* key : {"ca", "token"}) {
      const std::string value = ValueOf(driver.config, key);
      if (value.empty()) continue;
      command_.push_back(StrCat("--", key));
      command_.push_back(value);
    }
  }

  absl::Status Run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = command_;
    command.insert(command.end(), arguments.begin(), arguments.end());
    for (const absl::Time end = absl::Now() + kLeaseTime;;) {
      H5M_ASSIGN_OR_RETURN(const tools::ChildResult result,
                           tools::RunChild(command, {}, kCommandTime));
      if (result.code == 0) return absl::OkStatus();
      if (result.code != kExitRefused || absl::Now() > end) {
        return absl::FailedPreconditionError(result.err.substr(0, result.err.find('\n')));
      }
      absl::SleepFor(kRetry);
    }
  }

 private:
  std::vector<std::string> command_;
};

absl::Status CleanUp(const Driver& driver, const std::string& base, const std::string& server,
                     const std::string& name) {
  const absl::Status written = WriteEmptyFile(driver, base);
  RemoveDataFiles(driver, base);
  H5M_RETURN_IF_ERROR(written);
  const Cli cli(driver, server);
  H5M_RETURN_IF_ERROR(cli.Run({"prune", name, "--keep-last", "1"}));
  return cli.Run({"rm", name});
}

}  // namespace

void MirrorCleanup::Note(const Driver& driver, const std::string& base) {
  const auto records = FindLocalRecords(Hdf5Name(driver, base));
  if (!records.ok()) return;
  for (const FoundRecord& found : *records) {
    mirrors_.insert_or_assign({found.record.server, found.record.name}, driver);
  }
}

std::vector<std::string> MirrorCleanup::Run(const std::string& base) {
  std::vector<std::string> sentences;
  for (const auto& [mirror, driver] : std::exchange(mirrors_, {})) {
    const auto& [server, name] = mirror;
    const absl::Status status = CleanUp(driver, base, server, name);
    if (status.ok()) continue;
    sentences.push_back(StrCat(server, " keeps ", name, " with a version for each iteration (",
                               ToStd(status.message()), "); h5mirror --server ", server, " rm ",
                               "'", name, "' removes it, with the right delete"));
  }
  return sentences;
}

}  // namespace h5mirror::perf
