// bench_ticks: writes one file and flushes it at each tick, like an instrument with followers.
//
//   bench_ticks frames FILE --datasets 10000 --side 16 --cycles 100 --tick-ms 100
//   bench_ticks groups FILE --count 1000000 --tick-ms 100
//   bench_ticks pulse  FILE --ticks 1000 --tick-ms 100 --values 512
//
// One line of JSON on stdout at the end. `frames` and `groups` are the three tables of the VFD SWMR
// performance study (2021): latest format, pages of 4 KiB, a page buffer of 4 MiB.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/drivers.h"
#include "bench/timing.h"
#include "bench/workloads.h"
#include "nlohmann/json.hpp"

namespace h5mirror::bench {
namespace {

constexpr hsize_t kPageBytes = 4096;
constexpr size_t kPageBufferBytes = 4 << 20;

struct Options {
  std::string file;
  DriverChoice driver;
  std::string warm_up_file;
  std::string flush_at_file;
  double tick_ms = 100;  // 0: no flush
  bool unpaged = false;
  bool start_on_stdin = false;
  int datasets = 10;
  int side = 16;
  int element_bytes = 4;
  int cycles = 100;
  int chunk_cache_kib = 1024;  // of each dataset; HDF5's own default
  int count = 1000;
  int ticks = 1000;
  int values = 512;
};

// Flushes a file at the first call after a tick has passed since the last flush. Between two
// flushes the program has a whole tick for itself, as in VFD SWMR: there the next tick begins when
// the work at the end of the last one is done. Or flushes at the calls at which another run did, so
// that both do the same work.
class Ticker {
 public:
  // `flush_at`: the numbers of the calls of Poll() at which the other run flushed; empty: none.
  Ticker(hid_t file, double tick_ms, std::vector<uint64_t> flush_at = {})
      : file_(file),
        tick_s_(tick_ms > 0 ? tick_ms * 1e-3 : std::numeric_limits<double>::infinity()),
        flush_at_(std::move(flush_at)),
        next_s_(NowSeconds() + tick_s_) {}

  void Poll() {
    ++polls_;
    if (IsDue()) Flush();
  }

  nlohmann::json AsJson() const {
    return {{"ticks", flushed_at_.size()},
            {"flushed_at", flushed_at_},
            {"flush_s", flush_s_},
            {"flush_max_s", flush_max_s_}};
  }

 private:
  bool IsDue() const {
    if (flush_at_.empty()) return NowSeconds() >= next_s_;
    return flushed_at_.size() < flush_at_.size() && polls_ == flush_at_[flushed_at_.size()];
  }

  void Flush() {
    const double start_s = NowSeconds();
    Check(H5Fflush(file_, H5F_SCOPE_GLOBAL), "H5Fflush");
    const double end_s = NowSeconds();
    flushed_at_.push_back(polls_);
    flush_s_ += end_s - start_s;
    flush_max_s_ = std::max(flush_max_s_, end_s - start_s);
    next_s_ = end_s + tick_s_;
  }

  const hid_t file_;
  const double tick_s_;
  const std::vector<uint64_t> flush_at_;
  double next_s_;
  uint64_t polls_ = 0;
  std::vector<uint64_t> flushed_at_;
  double flush_s_ = 0;
  double flush_max_s_ = 0;
};

std::vector<uint64_t> ReadNumbers(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path);
  if (!file) throw Hdf5Error("cannot read " + path);
  return {std::istream_iterator<uint64_t>(file), std::istream_iterator<uint64_t>()};
}

hid_t CreateFile(const Options& options, const std::string& path) {
  const hid_t fapl = MakeFapl(options.driver, path);
  const hid_t fcpl = Check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate");
  Check(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "H5Pset_libver_bounds");
  Check(H5Pset_cache(fapl, 0, 521, static_cast<size_t>(options.chunk_cache_kib) << 10, 0.75),
        "H5Pset_cache");
  if (!options.unpaged) {
    Check(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, false, 1),
          "H5Pset_file_space_strategy");
    Check(H5Pset_file_space_page_size(fcpl, kPageBytes), "H5Pset_file_space_page_size");
    Check(H5Pset_page_buffer_size(fapl, kPageBufferBytes, 0, 0), "H5Pset_page_buffer_size");
  }
  const hid_t file = Check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, fcpl, fapl), "H5Fcreate");
  H5Pclose(fcpl);
  H5Pclose(fapl);
  return file;
}

// One dataset of frames; each step adds one.
class Frames {
 public:
  Frames(hid_t file, const std::string& name, const Options& options)
      : side_(static_cast<hsize_t>(options.side)) {
    const hsize_t now[] = {0, side_, side_}, most[] = {H5S_UNLIMITED, side_, side_};
    const hsize_t chunk[] = {1, side_, side_};
    const hid_t space = Check(H5Screate_simple(3, now, most), "H5Screate_simple");
    const hid_t dcpl = Check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    Check(H5Pset_chunk(dcpl, 3, chunk), "H5Pset_chunk");
    dataset_ =
        Check(H5Dcreate2(file, name.c_str(), Type(options), space, H5P_DEFAULT, dcpl, H5P_DEFAULT),
              "H5Dcreate2");
    H5Pclose(dcpl);
    H5Sclose(space);
  }

  static hid_t Type(const Options& options) {
    return options.element_bytes == 1 ? H5T_NATIVE_UINT8 : H5T_NATIVE_UINT32;
  }

  void Append(hsize_t step, hid_t type, hid_t memory, const void* frame) {
    const hsize_t size[] = {step + 1, side_, side_}, first[] = {step, 0, 0};
    const hsize_t one[] = {1, side_, side_};
    Check(H5Dset_extent(dataset_, size), "H5Dset_extent");
    const hid_t space = Check(H5Dget_space(dataset_), "H5Dget_space");
    Check(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, one, nullptr),
          "H5Sselect_hyperslab");
    Check(H5Dwrite(dataset_, type, memory, space, H5P_DEFAULT, frame), "H5Dwrite");
    H5Sclose(space);
  }

  void Close() { Check(H5Dclose(dataset_), "H5Dclose"); }

 private:
  const hsize_t side_;
  hid_t dataset_;
};

// Changes the frame, so that no page of it equals a page of another frame.
void Stir(std::vector<uint32_t>& frame) {
  static uint32_t count = 0;
  ++count;
  for (size_t i = 0; i < frame.size(); i += kPageBytes / sizeof(uint32_t)) frame[i] = count;
}

uint64_t WriteFrames(const Options& options, hid_t file, Ticker& ticker) {
  const size_t frame_bytes =
      static_cast<size_t>(options.side) * options.side * options.element_bytes;
  std::vector<uint32_t> frame((frame_bytes + 3) / 4, 0x9e3779b9);
  const hid_t type = Frames::Type(options);
  const hsize_t one[] = {1, static_cast<hsize_t>(options.side), static_cast<hsize_t>(options.side)};
  const hid_t memory = Check(H5Screate_simple(3, one, nullptr), "H5Screate_simple");
  std::vector<Frames> all;
  for (int i = 0; i < options.datasets; ++i) {
    all.emplace_back(file, "d" + std::to_string(i), options);
    ticker.Poll();
  }
  for (int cycle = 0; cycle < options.cycles; ++cycle) {
    for (Frames& each : all) {
      Stir(frame);
      each.Append(static_cast<hsize_t>(cycle), type, memory, frame.data());
      ticker.Poll();
    }
  }
  for (Frames& each : all) each.Close();
  H5Sclose(memory);
  return frame_bytes * static_cast<uint64_t>(options.datasets) * options.cycles;
}

uint64_t WriteGroups(const Options& options, hid_t file, Ticker& ticker) {
  for (int i = 0; i < options.count; ++i) {
    const std::string name = "g" + std::to_string(i);
    Check(H5Gclose(Check(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         "H5Gcreate2")),
          "H5Gclose");
    ticker.Poll();
  }
  return 0;
}

using Body = uint64_t (*)(const Options&, hid_t, Ticker&);

// Loads the driver and makes its connection.
void WarmUp(Options options) {
  if (options.warm_up_file.empty()) return;
  options.count = 1;
  const hid_t file = CreateFile(options, options.warm_up_file);
  Ticker ticker(file, 0);
  WriteGroups(options, file, ticker);
  Check(H5Fclose(file), "H5Fclose");
}

nlohmann::json RunTicks(const Options& options, Body body) {
  WarmUp(options);
  if (options.start_on_stdin) WaitForStart();
  const double cpu_before_s = CpuSeconds();
  const double start_s = NowSeconds();
  const hid_t file = CreateFile(options, options.file);
  const double open_s = NowSeconds() - start_s;
  Ticker ticker(file, options.tick_ms, ReadNumbers(options.flush_at_file));
  const uint64_t bytes = body(options, file, ticker);
  const double felt_s = NowSeconds() - start_s;
  Check(H5Fclose(file), "H5Fclose");
  nlohmann::json result = ticker.AsJson();
  result.update({{"open_s", open_s},
                 {"felt_s", felt_s},
                 {"total_s", NowSeconds() - start_s},
                 {"bytes", bytes},
                 {"cpu_before_s", cpu_before_s}});
  return result;
}

void SleepUntil(double until_s) {
  const double left_s = until_s - NowSeconds();
  if (left_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left_s));
}

void WriteValues(hid_t dataset, uint64_t value, std::vector<uint64_t>& values) {
  std::fill(values.begin(), values.end(), value);
  Check(H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        "H5Dwrite");
}

// Writes the tick's number into all of dataset `d` and flushes, at fixed times. Ready after a first
// flush with 0, so that there is a file to follow; `flushed_s` holds when the flush of 1, 2, ...
// returned.
nlohmann::json RunPulse(const Options& options) {
  const hid_t file = CreateFile(options, options.file);
  std::vector<uint64_t> values(static_cast<size_t>(options.values));
  const hsize_t count = values.size();
  const hid_t space = Check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
  const hid_t dataset =
      Check(H5Dcreate2(file, "d", H5T_NATIVE_UINT64, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
            "H5Dcreate2");
  WriteValues(dataset, 0, values);
  Check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  if (options.start_on_stdin) WaitForStart();
  const double cpu_before_s = CpuSeconds();
  const double start_s = NowSeconds();
  nlohmann::json flushed = nlohmann::json::array();
  for (int tick = 1; tick <= options.ticks; ++tick) {
    SleepUntil(start_s + tick * options.tick_ms * 1e-3);
    WriteValues(dataset, static_cast<uint64_t>(tick), values);
    Check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
    flushed.push_back(NowSeconds());
  }
  const double felt_s = NowSeconds() - start_s;
  H5Sclose(space);
  Check(H5Dclose(dataset), "H5Dclose");
  Check(H5Fclose(file), "H5Fclose");
  return {{"flushed_s", flushed},
          {"open_s", 0.0},
          {"felt_s", felt_s},
          {"total_s", NowSeconds() - start_s},
          {"bytes", options.ticks * count * sizeof(uint64_t)},
          {"cpu_before_s", cpu_before_s}};
}

nlohmann::json RunFrames(const Options& options) { return RunTicks(options, WriteFrames); }
nlohmann::json RunGroups(const Options& options) { return RunTicks(options, WriteGroups); }

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes one file and flushes it at each tick.");
  const auto add = [&](const char* name, const char* what, nlohmann::json (*run)(const Options&)) {
    CLI::App* verb = app.add_subcommand(name, what);
    verb->add_option("file", options.file, "the file, absolute")->required();
    verb->add_option("--driver", options.driver.name, "sec2 or a plugin's name");
    verb->add_option("--config", options.driver.config, "the driver's config string");
    verb->add_option("--tick-ms", options.tick_ms, "from flush to flush; 0: none")
        ->check(CLI::Range(0.0, 3.6e6));
    verb->add_flag("--unpaged", options.unpaged, "no pages and no page buffer");
    verb->add_flag("--start-on-stdin", options.start_on_stdin, "print `ready`, wait for a line");
    verb->callback([&options, run] { std::cout << run(options) << std::endl; });
    return verb;
  };
  CLI::App* frames = add("frames", "datasets that get a frame each in each cycle", RunFrames);
  frames->add_option("--datasets", options.datasets)->check(CLI::Range(1, 1'000'000));
  frames->add_option("--side", options.side, "of a frame")->check(CLI::Range(1, 10'000));
  frames->add_option("--element-bytes", options.element_bytes)->check(CLI::IsMember({1, 4}));
  frames->add_option("--cycles", options.cycles)->check(CLI::Range(1, 1'000'000));
  frames->add_option("--chunk-cache-kib", options.chunk_cache_kib, "of each dataset")
      ->check(CLI::Range(0, 1 << 20));
  CLI::App* groups = add("groups", "groups in the root", RunGroups);
  groups->add_option("--count", options.count)->check(CLI::Range(1, 100'000'000));
  for (CLI::App* verb : {frames, groups}) {
    verb->add_option("--warm-up", options.warm_up_file, "write this file first, not timed");
    verb->add_option("--flush-at", options.flush_at_file,
                     "flush where another run did: numbers from its `flushed_at`");
  }
  CLI::App* pulse = add("pulse", "the tick's number in a small dataset", RunPulse);
  pulse->add_option("--ticks", options.ticks)->check(CLI::Range(1, 10'000'000));
  pulse->add_option("--values", options.values, "of 8 bytes")->check(CLI::Range(1, 1 << 27));
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) {
  try {
    return h5mirror::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_ticks: %s\n", error.what());
    return 1;
  }
}
