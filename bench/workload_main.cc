// bench_workload: runs one workload on one file with one driver and prints how long it took.
//
//   bench_workload NAME FILE [--driver D --config C] [--warm-up FILE] [--start-on-stdin] ...
//
// One line of JSON on stdout; the other lines are the handshake of --start-on-stdin.
#include <cstdio>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "bench/drivers.h"
#include "bench/timing.h"
#include "bench/workloads.h"
#include "nlohmann/json.hpp"

namespace h5mirror::bench {
namespace {

struct Options {
  std::string workload;
  std::string file;
  DriverChoice driver;
  std::string warm_up_file;
  double scale = 1.0;
  int repeats = 1;
  bool fsync_after = false;
  bool start_on_stdin = false;
};

struct Times {
  double open_s = 0;   // H5Fcreate or H5Fopen
  double felt_s = 0;   // until the last call before H5Fclose has returned
  double total_s = 0;  // H5Fclose, and the fsync where one was wanted, included
  uint64_t bytes = 0;
};

hid_t OpenFile(const Workload& workload, const std::string& path, hid_t fapl) {
  return workload.use == FileUse::kCreate
             ? Check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl), "H5Fcreate")
             : Check(H5Fopen(path.c_str(), H5F_ACC_RDWR, fapl), "H5Fopen");
}

Times RunOnce(const Workload& workload, const Options& options, const std::string& path) {
  Times times;
  const hid_t fapl = MakeFapl(options.driver, path);
  const double start_s = NowSeconds();
  const hid_t file = OpenFile(workload, path, fapl);
  times.open_s = NowSeconds() - start_s;
  times.bytes = workload.run(file, options.scale);
  times.felt_s = NowSeconds() - start_s;
  Check(H5Fclose(file), "H5Fclose");
  if (options.fsync_after) SyncFile(path);
  times.total_s = NowSeconds() - start_s;
  H5Pclose(fapl);
  return times;
}

// Returns the sum over all repeats. Short workloads are repeated in one process, so that the grain
// of clock and scheduler is small beside them.
Times RunAll(const Workload& workload, const Options& options) {
  Times sum;
  for (int i = 0; i < options.repeats; ++i) {
    const Times times = RunOnce(workload, options, options.file);
    sum.open_s += times.open_s;
    sum.felt_s += times.felt_s;
    sum.total_s += times.total_s;
    sum.bytes += times.bytes;
  }
  return sum;
}

int RunWorkload(const Options& options) {
  const Workload* workload = FindWorkload(options.workload);
  if (workload == nullptr) throw Hdf5Error("no workload '" + options.workload + "'");
  Check(H5open(), "H5open");
  if (!options.warm_up_file.empty()) RunOnce(*FindWorkload("tiny"), options, options.warm_up_file);
  if (options.start_on_stdin) WaitForStart();
  const double cpu_before_s = CpuSeconds();
  const Times times = RunAll(*workload, options);
  // The starter reads the rest of the process's CPU time from wait4(2): a mirror may still be
  // sending after the last close has returned.
  std::cout << nlohmann::json{{"workload", options.workload}, {"open_s", times.open_s},
                              {"felt_s", times.felt_s},       {"total_s", times.total_s},
                              {"bytes", times.bytes},         {"cpu_before_s", cpu_before_s}}
            << std::endl;
  return 0;
}

// Makes the file that kReopen workloads start from.
int MakePremade(const std::string& path, uint64_t size_mib) {
  const hid_t file =
      Check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
  FillPremade(file, size_mib);
  Check(H5Fclose(file), "H5Fclose");
  return 0;
}

std::string WorkloadList() {
  std::string list = "workloads:\n";
  for (const Workload& workload : Workloads()) {
    list += std::string("  ") + workload.name + ": " + workload.what + "\n";
  }
  return list;
}

int Main(int argc, char** argv) {
  Options options;
  uint64_t premade_mib = 0;
  CLI::App app("Runs one workload on one file and prints its times.");
  app.footer(WorkloadList());
  app.add_option("workload", options.workload, "name of the workload, or `premade`")->required();
  app.add_option("file", options.file, "the file, absolute for `mirror`")->required();
  app.add_option("--driver", options.driver.name, "sec2, splitter, mirror or a plugin's name");
  app.add_option("--config", options.driver.config, "the driver's config string");
  app.add_option("--warm-up", options.warm_up_file, "write this file first, not timed");
  app.add_option("--scale", options.scale, "shrinks the counts")->check(CLI::Range(1e-6, 1.0));
  app.add_option("--repeats", options.repeats, "runs in a row")->check(CLI::Range(1, 100'000));
  app.add_option("--premade-mib", premade_mib, "`premade`: size in MiB");
  app.add_flag("--fsync", options.fsync_after, "fsync after the close, inside total_s");
  app.add_flag("--start-on-stdin", options.start_on_stdin, "print `ready`, wait for a line");
  CLI11_PARSE(app, argc, argv);
  if (options.workload == "premade") return MakePremade(options.file, premade_mib);
  return RunWorkload(options);
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) {
  try {
    return h5mirror::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_workload: %s\n", error.what());
    return 1;
  }
}
