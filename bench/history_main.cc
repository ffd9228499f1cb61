// bench_history: makes, opens and reads versions of one file through one driver, and prints how
// long each took.
//
//   bench_history create FILE --mib 64 [--driver D --config C]
//   bench_history commit FILE --pages 20 --count 10 [--sync FILE...]
//   bench_history open FILE --versions 1,2,3
//   bench_history read FILE --versions 1
//
// In the config `{version}` stands for the version. One line of JSON on stdout: seconds.
#include <cmath>
#include <cstdio>
#include <iostream>
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

constexpr char kDataset[] = "d";
constexpr hsize_t kPageBytes = 4096;
constexpr hsize_t kPageValues = kPageBytes / sizeof(double);
constexpr hsize_t kPieceBytes = 1 << 20;

struct Options {
  std::string file;
  DriverChoice driver;
  uint64_t size_mib = 64;
  bool sparse = false;
  std::string data = "noise";
  int pages = 20;
  int count = 1;
  uint64_t seed = 1;
  std::vector<std::string> sync_files;
  std::vector<std::string> versions = {""};
};

void SyncFiles(const std::vector<std::string>& files) {
  for (const std::string& file : files) SyncFile(file);
}

// Values as instruments and programs leave them.
class Values {
 public:
  Values(std::string kind, uint64_t seed) : kind_(std::move(kind)), random_(seed) {
    if (kind_ != "noise" && kind_ != "signal" && kind_ != "counts") {
      throw Hdf5Error("no data '" + kind_ + "': noise, signal or counts");
    }
  }
  // noise: no compressor makes it smaller. signal: a slow wave, digitized with 12 bits and stored
  // as double. counts: small whole numbers, like a detector's, stored as double.
  double Next() {
    if (kind_ == "noise") return normal_(random_);
    if (kind_ == "counts") return static_cast<double>(std::poisson_distribution<int>(3)(random_));
    const double wave = std::sin(1e-3 * static_cast<double>(n_++)) + 0.01 * normal_(random_);
    return std::round(wave * 2048) / 2048;
  }
  void Fill(std::vector<double>* values) {
    for (double& value : *values) value = Next();
  }
  std::mt19937_64& random() { return random_; }

 private:
  const std::string kind_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  uint64_t n_ = 0;
};

// An access list for `version`. It aligns the dataset's bytes with the store's pages.
hid_t AlignedFapl(const Options& options, const std::string& version = "") {
  DriverChoice driver = options.driver;
  const std::string mark = "{version}";
  const size_t at = driver.config.find(mark);
  if (at != std::string::npos) driver.config.replace(at, mark.size(), version);
  const hid_t fapl = MakeFapl(driver, options.file);
  Check(H5Pset_alignment(fapl, kPageBytes, kPageBytes), "H5Pset_alignment");
  return fapl;
}

hid_t OpenFile(const Options& options, unsigned flags, const std::string& version = "") {
  const hid_t fapl = AlignedFapl(options, version);
  const hid_t file = Check(H5Fopen(options.file.c_str(), flags, fapl), "H5Fopen");
  H5Pclose(fapl);
  return file;
}

// Writes or reads `values` at element `first`.
template <typename Call>
void Transfer(hid_t dataset, hsize_t first, std::vector<double>* values, Call call) {
  const hsize_t count = values->size();
  const hid_t memory = Check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
  const hid_t space = Check(H5Dget_space(dataset), "H5Dget_space");
  Check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &count, nullptr),
        "H5Sselect_hyperslab");
  Check(call(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values->data()), "transfer");
  H5Sclose(space);
  H5Sclose(memory);
}

// One contiguous dataset of the whole size; `sparse`: with nothing in it.
nlohmann::json Create(const Options& options) {
  const double start_s = NowSeconds();
  const hid_t fapl = AlignedFapl(options);
  const hid_t file =
      Check(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl), "H5Fcreate");
  const hid_t dcpl = Check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  Check(H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
  Check(H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  const hsize_t count = (options.size_mib << 20) / sizeof(double);
  const hid_t space = Check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
  const hid_t dataset =
      Check(H5Dcreate2(file, kDataset, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT),
            "H5Dcreate2");
  if (!options.sparse) {
    Values values(options.data, options.seed);
    std::vector<double> piece(kPieceBytes / sizeof(double));
    for (hsize_t first = 0; first < count; first += piece.size()) {
      values.Fill(&piece);
      Transfer(dataset, first, &piece, H5Dwrite);
    }
  }
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(dcpl);
  H5Pclose(fapl);
  Check(H5Fclose(file), "H5Fclose");
  SyncFiles(options.sync_files);
  return {{"total_s", NowSeconds() - start_s}};
}

// Opens, overwrites `pages` pages at random places and closes, `count` times.
nlohmann::json Commit(const Options& options) {
  Values values(options.data, options.seed);
  nlohmann::json commits = nlohmann::json::array();
  std::vector<double> page(kPageValues);
  for (int n = 0; n < options.count; ++n) {
    const double start_s = NowSeconds();
    const hid_t file = OpenFile(options, H5F_ACC_RDWR);
    const hid_t dataset = Check(H5Dopen2(file, kDataset, H5P_DEFAULT), "H5Dopen2");
    const hsize_t pages = H5Dget_storage_size(dataset) / kPageBytes;
    for (int i = 0; i < options.pages; ++i) {
      values.Fill(&page);
      Transfer(dataset, values.random()() % pages * kPageValues, &page, H5Dwrite);
    }
    H5Dclose(dataset);
    Check(H5Fclose(file), "H5Fclose");
    SyncFiles(options.sync_files);
    commits.push_back(NowSeconds() - start_s);
  }
  return {{"commits_s", commits}};
}

// Opens each version for reading; the first one twice, as it makes the connection.
nlohmann::json Open(const Options& options) {
  nlohmann::json opens = nlohmann::json::array();
  Check(H5Fclose(OpenFile(options, H5F_ACC_RDONLY, options.versions.front())), "H5Fclose");
  for (const std::string& version : options.versions) {
    const double start_s = NowSeconds();
    const hid_t file = OpenFile(options, H5F_ACC_RDONLY, version);
    opens.push_back(NowSeconds() - start_s);
    Check(H5Fclose(file), "H5Fclose");
  }
  return {{"opens_s", opens}};
}

// Reads the whole dataset of each version, front to back.
nlohmann::json Read(const Options& options) {
  nlohmann::json reads = nlohmann::json::array();
  for (const std::string& version : options.versions) {
    const hid_t file = OpenFile(options, H5F_ACC_RDONLY, version);
    const double start_s = NowSeconds();
    const hid_t dataset = Check(H5Dopen2(file, kDataset, H5P_DEFAULT), "H5Dopen2");
    const hsize_t count = H5Dget_storage_size(dataset) / sizeof(double);
    std::vector<double> piece(kPieceBytes / sizeof(double));
    for (hsize_t first = 0; first < count; first += piece.size()) {
      Transfer(dataset, first, &piece, H5Dread);
    }
    H5Dclose(dataset);
    reads.push_back(NowSeconds() - start_s);
    Check(H5Fclose(file), "H5Fclose");
  }
  return {{"reads_s", reads}};
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Makes, opens and reads versions of one file, and prints the times.");
  const auto add = [&](const char* name, const char* what, nlohmann::json (*run)(const Options&)) {
    CLI::App* verb = app.add_subcommand(name, what);
    verb->add_option("file", options.file, "the file, absolute")->required();
    verb->add_option("--driver", options.driver.name, "sec2, onion or a plugin's name");
    verb->add_option("--config", options.driver.config, "the driver's config string");
    verb->add_option("--data", options.data, "noise, signal or counts");
    verb->add_option("--seed", options.seed, "of the values and the places");
    verb->add_option("--sync", options.sync_files, "fsync these after each close");
    verb->callback([&options, run] { std::cout << run(options) << std::endl; });
    return verb;
  };
  CLI::App* create = add("create", "make the file", Create);
  create->add_option("--mib", options.size_mib, "its size")->check(CLI::Range(1, 1 << 30));
  create->add_flag("--sparse", options.sparse, "with nothing in it");
  CLI::App* commit = add("commit", "make versions", Commit);
  commit->add_option("--pages", options.pages, "to overwrite in each");
  commit->add_option("--count", options.count, "how many");
  for (CLI::App* verb : {add("open", "open versions", Open), add("read", "read versions", Read)}) {
    verb->add_option("--versions", options.versions, "comma-separated")->delimiter(',');
  }
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
    std::fprintf(stderr, "bench_history: %s\n", error.what());
    return 1;
  }
}
