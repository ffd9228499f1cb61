#include "h5perf/run_h5perf.h"

#include <stdlib.h>

#include <fstream>
#include <iostream>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/version.h"
#include "h5perf/failure.h"
#include "h5perf/hdf5_driver.h"
#include "h5perf/help.h"
#include "h5perf/report.h"
#include "h5perf/run.h"
#include "h5perf_serial/data_file.h"

namespace h5mirror::pperf {
namespace {

// The first process's: MPI's starter need not hand an environment on to other hosts.
absl::StatusOr<Environment> ReadEnvironment(const Group& world) {
  const char* hints = getenv("HDF5_MPI_INFO");
  std::vector<std::string> words;
  if (world.first()) {
    words = {perf::PrefixText("HDF5_PARAPREFIX"), perf::BelowPrefix("#pio_tmp_", "HDF5_PARAPREFIX"),
             perf::KeepsFiles() ? "keeps" : "", hints == nullptr ? "" : "hints",
             hints == nullptr ? "" : hints};
  }
  words = world.Share(std::move(words));
  Environment environment;
  environment.prefix = words[0];
  environment.base = words[1];
  environment.keeps_files = !words[2].empty();
  environment.has_hints = !words[3].empty();
  H5M_ASSIGN_OR_RETURN(environment.hints, ParseHints(words[4], MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL));
  return environment;
}

// Owns the hints as MPI takes them.
class Info {
 public:
  explicit Info(const Environment& environment) {
    if (!environment.has_hints) return;
    MPI_Info_create(&info_);
    for (const auto& [key, value] : environment.hints) {
      MPI_Info_set(info_, key.c_str(), value.c_str());
    }
  }
  ~Info() {
    if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
  }
  Info(const Info&) = delete;

  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

// A driver that HDF5 does not have is a matter of the command line, not of an iteration.
absl::Status CheckDrivers(const Options& options, const Group& world) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  AddPluginDir();
  for (const Driver& driver : options.drivers) {
    H5M_RETURN_IF_ERROR(MakeFapl(options, driver, world).status());
  }
  return absl::OkStatus();
}

// Opens the report's file in the first process only; all processes get the result.
absl::Status OpenReport(const Options& options, const Group& world, std::ofstream& file) {
  if (options.output.empty()) return absl::OkStatus();
  int opened = 1;
  if (world.first()) {
    file.open(options.output, std::ios::trunc);
    opened = file ? 1 : 0;
  }
  MPI_Bcast(&opened, 1, MPI_INT, 0, world.comm);
  if (opened == 1) return absl::OkStatus();
  return absl::NotFoundError(ToAbsl(
      StrCat("the report cannot be written to ", options.output, "; name another file by -o")));
}

absl::Status Report(const Options& options, const Results& results, std::ostream& out) {
  const std::string library = LibraryVersion();
  out << (options.json ? JsonReport(options, results, library)
                       : TextReport(options, results, library, MPI_MAX_INFO_VAL))
      << std::flush;
  if (!out) return absl::DataLossError("the report could not be written whole");
  for (const Cell& cell : results.cells) {
    for (const Lane& lane : cell.lanes) {
      if (lane.complaint.empty()) continue;
      std::cerr << "h5perf: "
                << Printable(StrCat(lane.label(), ", ", cell.processes,
                                    " process(es): not mirrored, its times are those of local "
                                    "writing: ",
                                    lane.complaint))
                << "\n";
    }
  }
  return absl::OkStatus();
}

// The first process's reason, where all have the same.
int Refuse(const Group& world, const absl::Status& why, const char* more) {
  if (world.first())
    std::cerr << "h5perf: " << Printable(ToStd(why.message())) << more << std::endl;
  return 1;
}

int Measure(const Options& options, const Environment& environment, const Group& world,
            std::ostream& out) {
  std::ofstream file;
  absl::Status status = OpenReport(options, world, file);
  if (status.ok()) status = CheckDrivers(options, world);
  DataFiles files;
  const StopWatch watch(files);
  MPI_Comm failures = MPI_COMM_NULL;
  MPI_Comm_dup(world.comm, &failures);
  Runner runner(options, environment, world, files);
  absl::StatusOr<Results> results = status.ok() ? runner.Run() : absl::StatusOr<Results>(status);
  if (!results.ok()) {
    EndRun(failures, results.status(), runner.is_open(), files);
    return 1;
  }
  MPI_Comm_free(&failures);
  if (!world.first()) return 0;
  status = Report(options, *results, options.output.empty() ? out : file);
  return status.ok() ? 0 : Refuse(world, status, "");
}

}  // namespace

int RunH5perf(std::vector<std::string> arguments, MPI_Comm comm, std::ostream& out) {
  Group world = Group::Of(comm, MPI_INFO_NULL);
  arguments = world.Share(std::move(arguments));
  const absl::StatusOr<Options> options = ParseOptions(arguments, world.processes);
  if (!options.ok()) return Refuse(world, options.status(), "; see h5perf --help");
  if (options->help || options->version) {
    if (!world.first()) return 0;
    out << (options->help ? HelpText() : StrCat("h5perf ", kVersion, "\n")) << std::flush;
    return out ? 0 : 1;
  }
  const absl::StatusOr<Environment> environment = ReadEnvironment(world);
  if (!environment.ok()) return Refuse(world, environment.status(), "");
  const Info info(*environment);
  world.info = info.get();
  return Measure(*options, *environment, world, out);
}

}  // namespace h5mirror::pperf
