#include "h5perf_serial/run_perf.h"

#include <fstream>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/version.h"
#include "h5perf_serial/help.h"
#include "h5perf_serial/options.h"
#include "h5perf_serial/report.h"
#include "h5perf_serial/run.h"

namespace h5mirror::perf {
namespace {

// A driver that HDF5 does not have is a matter of the command line, not of an iteration.
absl::Status CheckDrivers(const Options& options) {
  if (!options.hdf5) return absl::OkStatus();
  AddPluginDir();
  for (const Driver& driver : options.drivers) {
    H5M_ASSIGN_OR_RETURN(const hdf5::Handle fapl,
                         hdf5::Own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
    H5M_RETURN_IF_ERROR(SetDriver(driver, DataFileBase(), fapl.get()));
  }
  return absl::OkStatus();
}

std::string ReportOf(const Options& options, const Results& results) {
  switch (options.format) {
    case Format::kJson:
      return JsonReport(options, results);
    case Format::kCsv:
      return CsvReport(options, results);
    case Format::kText:
      break;
  }
  return TextReport(options, results);
}

absl::Status Measure(const Options& options, std::ostream& out, std::ostream& err,
                     std::ostream* progress, const tools::StopSignal* stop) {
  std::ofstream file;
  if (!options.output.empty()) {
    file.open(options.output, std::ios::trunc);
    if (!file)
      return absl::NotFoundError(StrCat("the report cannot be written to ", options.output));
  }
  std::ostream& report = options.output.empty() ? out : file;
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  H5M_RETURN_IF_ERROR(CheckDrivers(options));
  std::vector<std::string> stays;
  const absl::StatusOr<Results> ran = Run(options, progress, stop, &stays);
  for (const std::string& each : stays) err << "h5perf_serial: " << each << "\n";
  H5M_RETURN_IF_ERROR(ran.status());
  const Results& results = *ran;
  report << ReportOf(options, results) << std::flush;
  if (!report) return absl::DataLossError("the report could not be written whole");
  for (const Lane& lane : results.lanes) {
    if (lane.complaint.empty()) continue;
    err << "h5perf_serial: "
        << Printable(
               StrCat(lane.label(), ": ", lane.file_name,
                      " was not mirrored, its times are those of local writing: ", lane.complaint))
        << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

int RunPerf(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
            std::ostream* progress, const tools::StopSignal* stop) {
  const absl::StatusOr<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    err << "h5perf_serial: " << Printable(ToStd(options.status().message()))
        << "; see h5perf_serial --help\n";
    return 1;
  }
  if (options->help || options->version) {
    out << (options->help ? HelpText() : StrCat("h5perf_serial ", kVersion, "\n")) << std::flush;
    return out ? 0 : 1;
  }
  const absl::Status status = Measure(*options, out, err, progress, stop);
  if (status.ok()) return 0;
  err << "h5perf_serial: " << Printable(ToStd(status.message())) << "\n";
  return absl::IsCancelled(status) && stop != nullptr ? 128 + stop->number() : 1;
}

}  // namespace h5mirror::perf
