// The head of the text report.
#include "base/strings.h"
#include "h5perf/report.h"
#include "h5perf_serial/sizes.h"

namespace h5mirror::pperf {
namespace {

using perf::SizeText;

// Each line of the original's begins with the process that prints it.
class Lines {
 public:
  void Add(const std::string& line) { StrAppend(&text_, "rank 0: ", line, "\n"); }
  void AddPlain(const std::string& line) { StrAppend(&text_, line, "\n"); }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

std::string Square(uint64_t side) { return StrCat(SizeText(side), "x", SizeText(side)); }

void AddSizes(const Options& options, Lines& lines) {
  const Workload& work = options.workload;
  const auto least = static_cast<uint64_t>(options.processes_min);
  const auto most = static_cast<uint64_t>(options.processes_max);
  const uint64_t bytes = work.bytes_per_process;
  // Of all processes, for what one of them is the unit of.
  const auto range = [](uint64_t low, uint64_t high) {
    return StrCat(SizeText(low), ":", SizeText(high));
  };
  if (!work.two_d) {
    lines.Add(StrCat("Number of bytes per process per dataset=", SizeText(bytes)));
    lines.Add(StrCat("Size of dataset(s)=", range(bytes * least, bytes * most)));
    lines.Add(
        StrCat("File size=", range(bytes * least * work.datasets, bytes * most * work.datasets)));
    lines.Add(StrCat("Transfer buffer size=", range(options.buffer_min, options.buffer_max)));
    lines.Add(StrCat("Block size=", SizeText(work.block)));
    return;
  }
  const uint64_t low = bytes * least, high = bytes * most;
  const auto buffer = [&](uint64_t size) {
    return work.interleaved ? StrCat(SizeText(size), "x", SizeText(work.block))
                            : StrCat(SizeText(work.block), "x", SizeText(size));
  };
  lines.Add(StrCat("Number of bytes per process per dataset=", range(bytes * low, bytes * high)));
  lines.Add(StrCat("Size of dataset(s)=", Square(low), ":", Square(high)));
  lines.Add(StrCat("File size=", range(low * low * work.datasets, high * high * work.datasets)));
  lines.Add(
      StrCat("Transfer buffer size=", buffer(options.buffer_min), ":", buffer(options.buffer_max)));
  lines.Add(StrCat("Block size=", Square(work.block)));
}

void AddHints(const Environment& environment, int hint_bytes, Lines& lines) {
  lines.Add(StrCat("Dumping MPI Info Object (up to ", hint_bytes, " bytes per item):"));
  if (!environment.has_hints) return lines.AddPlain("object is MPI_INFO_NULL");
  lines.AddPlain(StrCat("object has ", environment.hints.size(), " items"));
  for (const auto& [key, value] : environment.hints) lines.AddPlain(StrCat(key, "=", value));
}

}  // namespace

std::string ParametersText(const Options& options, const Environment& environment,
                           const std::string& library, int hint_bytes) {
  const Workload& work = options.workload;
  Lines lines;
  lines.AddPlain(StrCat("HDF5 Library: Version ", library));
  lines.Add("==== Parameters ====");
  std::string apis;
  for (const Api api : options.apis) StrAppend(&apis, ApiName(api), " ");
  lines.Add(StrCat("IO API=", apis));
  lines.Add(StrCat("Number of files=", work.files));
  lines.Add(StrCat("Number of datasets=", work.datasets));
  lines.Add(StrCat("Number of iterations=", options.iterations));
  lines.Add(StrCat("Number of processes=", options.processes_min, ":", options.processes_max));
  AddSizes(options, lines);
  lines.Add(StrCat("Block Pattern in Dataset=", work.interleaved ? "Interleaved" : "Contiguous"));
  lines.Add(StrCat("I/O Method for MPI and HDF5=", work.collective ? "Collective" : "Independent"));
  lines.Add(StrCat("Geometry=", work.two_d ? "2D" : "1D"));
  for (const Driver& driver : options.drivers) {
    lines.Add(
        StrCat("VFL used for HDF5 I/O=", driver.name == "mpio" ? "MPI-IO driver" : driver.label));
  }
  lines.Add(StrCat("Data storage method in HDF5=", work.chunked ? "Chunked" : "Contiguous"));
  if (options.alignment > 1 || options.threshold > 1) {
    lines.Add(StrCat("HDF5 alignment=", SizeText(options.alignment),
                     ", threshold=", SizeText(options.threshold)));
  }
  lines.Add(StrCat("Env HDF5_PARAPREFIX=", environment.prefix));
  AddHints(environment, hint_bytes, lines);
  lines.Add("==== End of Parameters ====");
  return lines.text() + "\n";
}

}  // namespace h5mirror::pperf
