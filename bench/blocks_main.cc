// bench_blocks: many small objects in one file, written one after the other and read at random, as
// in the test of the Mig-drive work; and a file of many objects, walked.
//
//   bench_blocks write   FILE --count 5000 --block-kib 64
//   bench_blocks read    FILE... --count 1250 --seed 1
//   bench_blocks scan    FILE --read-kib 1024
//   bench_blocks objects FILE --count 100000
//   bench_blocks walk    FILE
//
// One line of JSON on stdout at the end.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/drivers.h"
#include "bench/timing.h"
#include "bench/workloads.h"
#include "nlohmann/json.hpp"

namespace h5mirror::bench {
namespace {

struct Options {
  std::vector<std::string> files;
  DriverChoice driver;
  std::string warm_up_file;
  bool start_on_stdin = false;
  int count = 0;
  int block_kib = 64;
  int meta_block_kib = 0;
  int read_kib = 1024;
  uint64_t seed = 1;
};

std::string BlockName(int index) { return "block" + std::to_string(index); }

// Opens with the file format that a program gets by default.
hid_t OpenFile(const Options& options, const std::string& path, bool creates) {
  const hid_t fapl = MakeFapl(options.driver, path);
  const auto meta_block_bytes = static_cast<hsize_t>(options.meta_block_kib) * 1024;
  if (meta_block_bytes > 0) {
    Check(H5Pset_meta_block_size(fapl, meta_block_bytes), "H5Pset_meta_block_size");
  }
  const hid_t file =
      creates ? Check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl), "H5Fcreate")
              : Check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, fapl), "H5Fopen");
  H5Pclose(fapl);
  return file;
}

// Loads the driver and makes its connection, before the caches are dropped.
void GetReady(const Options& options, bool creates) {
  if (!options.warm_up_file.empty()) {
    Check(H5Fclose(OpenFile(options, options.warm_up_file, creates)), "H5Fclose");
  }
  if (options.start_on_stdin) WaitForStart();
}

// The words that each block begins with, so that a reader can recognise the block.
std::vector<uint64_t> RandomWords(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> words(count);
  std::generate(words.begin(), words.end(), std::ref(random));
  return words;
}

void WriteBlock(hid_t file, int index, std::vector<uint64_t>& words) {
  const hsize_t count = words.size();
  words[0] = static_cast<uint64_t>(index);
  for (size_t i = 1; i < words.size(); i += 512) words[i] += 0x9e3779b97f4a7c15;
  const hid_t space = Check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
  const hid_t dataset = Check(H5Dcreate2(file, BlockName(index).c_str(), H5T_NATIVE_UINT64, space,
                                         H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                              "H5Dcreate2");
  Check(H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()),
        "H5Dwrite");
  Check(H5Dclose(dataset), "H5Dclose");
  H5Sclose(space);
}

nlohmann::json Write(const Options& options) {
  GetReady(options, true);
  std::vector<uint64_t> words =
      RandomWords(static_cast<size_t>(options.block_kib) * 128, options.seed);
  const double cpu_before_s = CpuSeconds();
  const double start_s = NowSeconds();
  const hid_t file = OpenFile(options, options.files.front(), true);
  const double open_s = NowSeconds() - start_s;
  for (int i = 0; i < options.count; ++i) WriteBlock(file, i, words);
  const double felt_s = NowSeconds() - start_s;
  Check(H5Fclose(file), "H5Fclose");
  return {{"open_s", open_s},
          {"felt_s", felt_s},
          {"total_s", NowSeconds() - start_s},
          {"bytes", static_cast<uint64_t>(options.count) * options.block_kib * 1024},
          {"cpu_before_s", cpu_before_s}};
}

// Returns its size. Throws if its bytes are another block's.
uint64_t ReadBlock(hid_t file, int index, std::vector<uint64_t>& words) {
  const hid_t dataset = Check(H5Dopen2(file, BlockName(index).c_str(), H5P_DEFAULT), "H5Dopen2");
  const uint64_t bytes = H5Dget_storage_size(dataset);
  words.resize(bytes / sizeof(uint64_t));
  Check(H5Dread(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()),
        "H5Dread");
  Check(H5Dclose(dataset), "H5Dclose");
  if (words.empty() || words[0] != static_cast<uint64_t>(index)) {
    throw Hdf5Error(BlockName(index) + " holds another one's bytes");
  }
  return bytes;
}

// `count` different blocks of each file in random order; 0: all.
nlohmann::json Read(const Options& options) {
  GetReady(options, false);
  const double cpu_before_s = CpuSeconds();
  const double start_s = NowSeconds();
  double open_s = 0;
  uint64_t bytes = 0, blocks = 0, file_number = 0;
  std::vector<uint64_t> words;
  for (const std::string& path : options.files) {
    const double open_start_s = NowSeconds();
    const hid_t file = OpenFile(options, path, false);
    open_s += NowSeconds() - open_start_s;
    H5G_info_t info = {};
    Check(H5Gget_info(file, &info), "H5Gget_info");
    std::vector<int> order(info.nlinks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(options.seed + file_number++));
    if (options.count > 0) order.resize(std::min<size_t>(order.size(), options.count));
    for (const int index : order) bytes += ReadBlock(file, index, words);
    blocks += order.size();
    Check(H5Fclose(file), "H5Fclose");
  }
  const double total_s = NowSeconds() - start_s;
  return {{"open_s", open_s},   {"felt_s", total_s},         {"total_s", total_s},
          {"bytes", bytes},     {"blocks", blocks},          {"cpu_before_s", cpu_before_s},
          {"start_s", start_s}, {"end_s", start_s + total_s}};
}

// Reads each file's first block whole, one piece after the other.
nlohmann::json Scan(const Options& options) {
  GetReady(options, false);
  const double cpu_before_s = CpuSeconds();
  const double start_s = NowSeconds();
  uint64_t bytes = 0;
  std::vector<uint64_t> words(static_cast<size_t>(options.read_kib) * 128);
  for (const std::string& path : options.files) {
    const hid_t file = OpenFile(options, path, false);
    const hid_t dataset = Check(H5Dopen2(file, BlockName(0).c_str(), H5P_DEFAULT), "H5Dopen2");
    const hid_t space = Check(H5Dget_space(dataset), "H5Dget_space");
    const hsize_t size = Check(H5Sget_simple_extent_npoints(space), "H5Sget_simple_extent_npoints");
    for (hsize_t at = 0; at < size; at += words.size()) {
      const hsize_t count = std::min<hsize_t>(words.size(), size - at);
      const hid_t memory = Check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
      Check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, nullptr, &count, nullptr),
            "H5Sselect_hyperslab");
      Check(H5Dread(dataset, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, words.data()),
            "H5Dread");
      H5Sclose(memory);
      bytes += count * sizeof(uint64_t);
    }
    H5Sclose(space);
    H5Dclose(dataset);
    Check(H5Fclose(file), "H5Fclose");
  }
  const double total_s = NowSeconds() - start_s;
  return {{"open_s", 0.0},  {"felt_s", total_s}, {"total_s", total_s},
          {"bytes", bytes}, {"blocks", 1},       {"cpu_before_s", cpu_before_s}};
}

// Groups of a thousand objects: the group, and scalar datasets in it.
nlohmann::json Objects(const Options& options) {
  GetReady(options, true);
  const double start_s = NowSeconds();
  const hid_t file = OpenFile(options, options.files.front(), true);
  const hid_t space = Check(H5Screate(H5S_SCALAR), "H5Screate");
  hid_t group = -1;
  for (int i = 0; i < options.count; ++i) {
    const std::string name = "o" + std::to_string(i);
    if (i % 1000 == 0) {
      if (group >= 0) H5Gclose(group);
      group = Check(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                    "H5Gcreate2");
      continue;
    }
    const hid_t dataset = Check(H5Dcreate2(group, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT),
                                "H5Dcreate2");
    Check(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &i), "H5Dwrite");
    Check(H5Dclose(dataset), "H5Dclose");
  }
  if (group >= 0) H5Gclose(group);
  H5Sclose(space);
  Check(H5Fclose(file), "H5Fclose");
  return {{"total_s", NowSeconds() - start_s}};
}

herr_t CountObject(hid_t, const char*, const H5O_info2_t*, void* count) {
  ++*static_cast<int64_t*>(count);
  return 0;
}

// Opens the file, and looks at the header of every object in it.
nlohmann::json Walk(const Options& options) {
  GetReady(options, false);
  const double cpu_before_s = CpuSeconds();
  const double start_s = NowSeconds();
  const hid_t file = OpenFile(options, options.files.front(), false);
  const double open_s = NowSeconds() - start_s;
  int64_t objects = -1;  // The root counts too.
  Check(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_NATIVE, CountObject, &objects, H5O_INFO_BASIC),
        "H5Ovisit3");
  const double felt_s = NowSeconds() - start_s;
  Check(H5Fclose(file), "H5Fclose");
  return {{"open_s", open_s}, {"felt_s", felt_s},   {"total_s", NowSeconds() - start_s},
          {"bytes", 0},       {"objects", objects}, {"cpu_before_s", cpu_before_s}};
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Many small objects in one file: writes and reads them, and prints the times.");
  const auto add = [&](const char* name, const char* what, nlohmann::json (*run)(const Options&)) {
    CLI::App* verb = app.add_subcommand(name, what);
    verb->add_option("file", options.files, "absolute")->required();
    verb->add_option("--driver", options.driver.name, "sec2 or a plugin's name");
    verb->add_option("--config", options.driver.config, "the driver's config string");
    verb->add_option("--warm-up", options.warm_up_file, "open this file first, not timed");
    verb->add_flag("--start-on-stdin", options.start_on_stdin, "print `ready`, wait for a line");
    verb->callback([&options, run] { std::cout << run(options) << std::endl; });
    return verb;
  };
  CLI::App* write = add("write", "datasets, one after the other", Write);
  CLI::App* read = add("read", "some of them, at random", Read);
  CLI::App* scan = add("scan", "the first one, from its beginning to its end", Scan);
  scan->add_option("--read-kib", options.read_kib, "of each read")->check(CLI::Range(1, 1 << 20));
  CLI::App* objects = add("objects", "groups and scalar datasets", Objects);
  add("walk", "open the file and look at each object", Walk);
  for (CLI::App* verb : {write, objects}) {
    verb->add_option("--count", options.count)->required()->check(CLI::Range(1, 100'000'000));
  }
  write->add_option("--block-kib", options.block_kib)->check(CLI::Range(1, 1 << 20));
  write->add_option("--meta-block-kib", options.meta_block_kib, "metadata in bulk; 0: HDF5's own")
      ->check(CLI::Range(0, 1 << 20));
  read->add_option("--count", options.count, "of each file; 0: all")
      ->check(CLI::Range(0, 100'000'000));
  for (CLI::App* verb : {write, read}) verb->add_option("--seed", options.seed);
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
    std::fprintf(stderr, "bench_blocks: %s\n", error.what());
    return 1;
  }
}
