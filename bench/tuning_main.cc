// bench_tuning: one recipe, with HDF5's settings as told, on one file with one driver.
//
//   bench_tuning RECIPE FILE --count N [SETTINGS] [--driver D --config C] [--warm-up FILE]
//
// One line of JSON on stdout; the other lines are the handshake of --start-on-stdin.
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "bench/drivers.h"
#include "bench/timing.h"
#include "bench/tuning_recipes.h"
#include "bench/workloads.h"
#include "nlohmann/json.hpp"

namespace h5mirror::bench {
namespace {

struct Options {
  std::string recipe;
  std::string file;
  std::string warm_up_file;
  uint64_t count = 0;
  DriverChoice driver;
  TuningSettings settings;
  bool start_on_stdin = false;
};

// System calls of this process so far, and the bytes in them (/proc/self/io). With a mirror they
// include those of its sender.
struct Calls {
  double reads = 0, writes = 0, written_bytes = 0;
};

Calls CallsNow() {
  std::ifstream io("/proc/self/io");
  Calls calls;
  std::string name;
  for (double value; io >> name >> value;) {
    if (name == "syscr:") calls.reads = value;
    if (name == "syscw:") calls.writes = value;
    if (name == "wchar:") calls.written_bytes = value;
  }
  return calls;
}

double PeakMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Times {
  double open_s = 0, felt_s = 0, total_s = 0;
  TuningFigures figures;
};

Times RunOnce(const TuningRecipe& recipe, const DriverChoice& driver,
              const TuningSettings& settings, const std::string& path, uint64_t count,
              const std::vector<int32_t>& values) {
  Times times;
  const hid_t fapl = MakeFapl(driver, path);
  SetAccess(settings, fapl);
  const hid_t fcpl = MakeFcpl(settings);
  const double start_s = NowSeconds();
  const hid_t file = Check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, fcpl, fapl), "H5Fcreate");
  times.open_s = NowSeconds() - start_s;
  times.figures = recipe.run({file, settings, count, values});
  times.felt_s = NowSeconds() - start_s;
  Check(H5Fclose(file), "H5Fclose");
  times.total_s = NowSeconds() - start_s;
  H5Pclose(fcpl);
  H5Pclose(fapl);
  return times;
}

int Run(const Options& options) {
  const TuningRecipe* recipe = FindTuningRecipe(options.recipe);
  if (recipe == nullptr) throw Hdf5Error("no recipe '" + options.recipe + "'");
  Check(H5open(), "H5open");
  if (!options.warm_up_file.empty()) {
    RunOnce(*FindTuningRecipe("kept"), options.driver, {}, options.warm_up_file, 10,
            RandomValues(64));
  }
  const std::vector<int32_t> values = RandomValues(recipe->value_count(options.count));
  if (options.start_on_stdin) WaitForStart();
  const double cpu_before_s = CpuSeconds();
  const Calls before = CallsNow();
  Times times =
      RunOnce(*recipe, options.driver, options.settings, options.file, options.count, values);
  const Calls after = CallsNow();
  const double file_bytes = static_cast<double>(std::filesystem::file_size(options.file));
  times.figures.insert({{"read_calls", after.reads - before.reads},
                        {"write_calls", after.writes - before.writes},
                        {"written_bytes", after.written_bytes - before.written_bytes},
                        {"file_bytes", file_bytes},
                        {"peak_mib", PeakMib()}});
  std::cout << nlohmann::json{{"open_s", times.open_s},   {"felt_s", times.felt_s},
                              {"total_s", times.total_s}, {"bytes", file_bytes},
                              {"figures", times.figures}, {"cpu_before_s", cpu_before_s}}
            << std::endl;
  return 0;
}

void AddSettings(CLI::App& app, TuningSettings& settings) {
  app.add_option("--meta-block", settings.meta_block_bytes);
  app.add_option("--page", settings.page_bytes);
  app.add_option("--page-buffer", settings.page_buffer_bytes);
  app.add_option("--chunk-cache", settings.chunk_cache_bytes);
  app.add_option("--preemption", settings.preemption);
  app.add_option("--sieve", settings.sieve_bytes);
  app.add_option("--transfer", settings.transfer_bytes);
  app.add_option("--threshold", settings.threshold_bytes);
  app.add_option("--alignment", settings.alignment_bytes);
  app.add_option("--libver", settings.libver);
  app.add_option("--deflate", settings.deflate);
  app.add_flag("--shuffle", settings.shuffle);
  app.add_flag("--compact", settings.compact);
  app.add_flag("--chunked", settings.chunked);
  app.add_option("--allocate", settings.allocate);
  app.add_flag("--never-fill", settings.never_fill);
}

std::string RecipeList() {
  std::string list = "recipes:\n";
  for (const TuningRecipe& recipe : TuningRecipes()) {
    list += std::string("  ") + recipe.name + ": " + recipe.what + "\n";
  }
  return list;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs one recipe on one file and prints its times. Sizes are bytes.");
  app.footer(RecipeList());
  app.add_option("recipe", options.recipe)->required();
  app.add_option("file", options.file)->required();
  app.add_option("--count", options.count)->required();
  app.add_option("--driver", options.driver.name, "sec2 or a plugin's name");
  app.add_option("--config", options.driver.config, "the driver's config string");
  app.add_option("--warm-up", options.warm_up_file, "write this file first, not timed");
  app.add_flag("--start-on-stdin", options.start_on_stdin, "print `ready`, wait for a line");
  AddSettings(app, options.settings);
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) {
  try {
    return h5mirror::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_tuning: %s\n", error.what());
    return 1;
  }
}
