#include "bench/workloads.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace h5mirror::bench {
namespace {

constexpr hsize_t kMiB = 1 << 20;
constexpr char kPremadeDataset[] = "frames";

int Scaled(int count, double scale) { return std::max(1, static_cast<int>(count * scale)); }

// Bytes that neither zero detection nor compression can make cheaper.
std::vector<uint64_t> RandomWords(size_t size_bytes) {
  std::mt19937_64 random(20260701);
  std::vector<uint64_t> words(size_bytes / sizeof(uint64_t));
  std::generate(words.begin(), words.end(), std::ref(random));
  return words;
}

// Changes every page of `words`, so that a rewritten file gets different bytes: else a mirror that
// skips equal pages would have nothing to do.
void Stir(std::vector<uint64_t>& words) {
  static uint64_t salt = std::random_device()();
  constexpr size_t kWordsPerPage = 4096 / sizeof(uint64_t);
  ++salt;
  for (size_t i = 0; i < words.size(); i += kWordsPerPage) words[i] ^= salt * 0x9e3779b97f4a7c15;
}

// Changes every word, like a program that computes its data.
void Recompute(std::vector<uint64_t>& words) {
  uint64_t state = words.back() + 1;
  for (uint64_t& word : words) {
    state = state * 6364136223846793005 + 1442695040888963407;
    word = state;
  }
}

hid_t CreateDataset(hid_t file, const char* name, hsize_t words, hsize_t chunk_words) {
  const hid_t space = Check(H5Screate_simple(1, &words, nullptr), "H5Screate_simple");
  const hid_t dcpl = Check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  if (chunk_words > 0) Check(H5Pset_chunk(dcpl, 1, &chunk_words), "H5Pset_chunk");
  Check(H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  const hid_t dataset =
      Check(H5Dcreate2(file, name, H5T_NATIVE_UINT64, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), name);
  H5Pclose(dcpl);
  H5Sclose(space);
  return dataset;
}

void WriteRange(hid_t dataset, hsize_t first, const std::vector<uint64_t>& words) {
  const hsize_t count = words.size();
  const hid_t file_space = Check(H5Dget_space(dataset), "H5Dget_space");
  const hid_t memory_space = Check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
  Check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &first, nullptr, &count, nullptr),
        "H5Sselect_hyperslab");
  Check(H5Dwrite(dataset, H5T_NATIVE_UINT64, memory_space, file_space, H5P_DEFAULT, words.data()),
        "H5Dwrite");
  H5Sclose(memory_space);
  H5Sclose(file_space);
}

// With a flush after each `blocks_per_flush` writes; 0: none.
uint64_t WriteFrames(hid_t file, double scale, int blocks_per_flush) {
  const int blocks = Scaled(256, scale);
  std::vector<uint64_t> block = RandomWords(kMiB);
  const hid_t dataset = CreateDataset(file, "frames", blocks * block.size(), 0);
  for (int i = 0; i < blocks; ++i) {
    Stir(block);
    WriteRange(dataset, i * block.size(), block);
    if (blocks_per_flush > 0 && (i + 1) % blocks_per_flush == 0) {
      Check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
    }
  }
  Check(H5Dclose(dataset), "H5Dclose");
  return blocks * kMiB;
}

uint64_t Contiguous(hid_t file, double scale) { return WriteFrames(file, scale, 0); }

uint64_t ContiguousFlushed(hid_t file, double scale) { return WriteFrames(file, scale, 8); }

uint64_t Chunked(hid_t file, double scale) {
  constexpr size_t kDatasetBytes = 8 * kMiB;
  constexpr hsize_t kChunkWords = 256 * 1024 / sizeof(uint64_t);
  const int datasets = Scaled(64, scale);
  std::vector<uint64_t> words = RandomWords(kDatasetBytes);
  for (int i = 0; i < datasets; ++i) {
    Recompute(words);
    const std::string name = "run" + std::to_string(i);
    const hid_t dataset = CreateDataset(file, name.c_str(), words.size(), kChunkWords);
    Check(H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()),
          "H5Dwrite");
    Check(H5Dclose(dataset), "H5Dclose");
  }
  return datasets * kDatasetBytes;
}

uint64_t Groups(hid_t file, double scale) {
  const int groups = Scaled(100'000, scale);
  for (int i = 0; i < groups; ++i) {
    const std::string name = "g" + std::to_string(i);
    Check(H5Gclose(Check(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         "H5Gcreate2")),
          "H5Gclose");
  }
  return 0;
}

// Blocks one after another, each a dataset: the workload with which the Mig-drive work measures
// metadata.
template <size_t kBytes>
uint64_t Blocks(hid_t file, double scale) {
  const int count = Scaled(5'000, scale);
  std::vector<uint64_t> block = RandomWords(kBytes);
  for (int i = 0; i < count; ++i) {
    Stir(block);
    const std::string name = "block" + std::to_string(i);
    const hid_t dataset = CreateDataset(file, name.c_str(), block.size(), 0);
    Check(H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()),
          "H5Dwrite");
    Check(H5Dclose(dataset), "H5Dclose");
  }
  return static_cast<uint64_t>(count) * kBytes;
}

enum class CycleEnd { kNothing, kFlush };

// An instrument with many channels: each cycle gives each channel its next small chunk.
uint64_t SmallChunks(hid_t file, double scale, CycleEnd cycle_end) {
  constexpr int kCycles = 50;
  const int channels = Scaled(2'000, scale);
  std::vector<uint64_t> chunk = RandomWords(512);
  std::vector<hid_t> datasets;
  for (int i = 0; i < channels; ++i) {
    const std::string name = "channel" + std::to_string(i);
    datasets.push_back(CreateDataset(file, name.c_str(), kCycles * chunk.size(), chunk.size()));
  }
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    for (const hid_t dataset : datasets) {
      Stir(chunk);
      WriteRange(dataset, cycle * chunk.size(), chunk);
    }
    if (cycle_end == CycleEnd::kFlush) Check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  }
  for (const hid_t dataset : datasets) Check(H5Dclose(dataset), "H5Dclose");
  return static_cast<uint64_t>(channels) * kCycles * chunk.size() * sizeof(uint64_t);
}

uint64_t SmallChunksQuiet(hid_t file, double scale) {
  return SmallChunks(file, scale, CycleEnd::kNothing);
}

uint64_t SmallChunksFlushed(hid_t file, double scale) {
  return SmallChunks(file, scale, CycleEnd::kFlush);
}

// Sets an attribute as h5py's `attrs[name] = value` does: under a passing name first, so that
// the old value is there until the new one is.
void SetAttribute(hid_t object, hid_t space, const std::string& name,
                  const std::vector<uint64_t>& value) {
  const std::string passing_name = name + ".new";
  const hid_t attribute = Check(
      H5Acreate2(object, passing_name.c_str(), H5T_NATIVE_UINT64, space, H5P_DEFAULT, H5P_DEFAULT),
      "H5Acreate2");
  Check(H5Awrite(attribute, H5T_NATIVE_UINT64, value.data()), "H5Awrite");
  Check(H5Aclose(attribute), "H5Aclose");
  if (Check(H5Aexists(object, name.c_str()), "H5Aexists") > 0) {
    Check(H5Adelete(object, name.c_str()), "H5Adelete");
  }
  Check(H5Arename(object, passing_name.c_str(), name.c_str()), "H5Arename");
}

uint64_t Attributes(hid_t file, double /*scale*/) {
  constexpr int kAttributes = 9;
  std::vector<uint64_t> value = RandomWords(sizeof(uint64_t));
  const hid_t dataset = Check(H5Dopen2(file, kPremadeDataset, H5P_DEFAULT), "H5Dopen2");
  const hid_t space = Check(H5Screate(H5S_SCALAR), "H5Screate");
  for (int i = 0; i < kAttributes; ++i) {
    Stir(value);
    SetAttribute(dataset, space, "note" + std::to_string(i), value);
  }
  H5Sclose(space);
  Check(H5Dclose(dataset), "H5Dclose");
  return kAttributes * sizeof(uint64_t);
}

// Opens a file, writes one value, closes it: the round trips of a session, and enough for a
// warm-up.
uint64_t Tiny(hid_t file, double /*scale*/) {
  std::vector<uint64_t> value = RandomWords(sizeof(uint64_t));
  Stir(value);
  const hid_t dataset = CreateDataset(file, "value", 1, 0);
  WriteRange(dataset, 0, value);
  Check(H5Dclose(dataset), "H5Dclose");
  return sizeof(uint64_t);
}

// The rows of the tables that bench/README.md describes, and `tiny`.
constexpr Workload kWorkloads[] = {
    {"contiguous", "contiguous 256 MiB in 1 MiB writes", FileUse::kCreate, Contiguous},
    {"contiguous_flush", "the same, H5Fflush after each 8 MiB", FileUse::kCreate,
     ContiguousFlushed},
    {"chunked", "64 chunked datasets, 512 MiB", FileUse::kCreate, Chunked},
    {"groups", "100,000 groups", FileUse::kCreate, Groups},
    {"small_chunks", "2,000 datasets x 50 small chunks", FileUse::kCreate, SmallChunksQuiet},
    {"small_chunks_flush", "the same, H5Fflush each cycle", FileUse::kCreate, SmallChunksFlushed},
    {"blocks_4k", "5,000 datasets of 4 KiB", FileUse::kCreate, Blocks<4 << 10>},
    {"blocks_64k", "5,000 datasets of 64 KiB", FileUse::kCreate, Blocks<64 << 10>},
    {"attributes", "9 attributes on a 500 MB file", FileUse::kReopen, Attributes},
    {"tiny", "one value", FileUse::kCreate, Tiny},
};

}  // namespace

std::span<const Workload> Workloads() { return kWorkloads; }

const Workload* FindWorkload(const std::string& name) {
  const auto* found = std::find_if(std::begin(kWorkloads), std::end(kWorkloads),
                                   [&](const Workload& workload) { return name == workload.name; });
  return found == std::end(kWorkloads) ? nullptr : found;
}

void FillPremade(hid_t file, uint64_t size_mib) {
  std::vector<uint64_t> block = RandomWords(kMiB);
  const hid_t dataset = CreateDataset(file, kPremadeDataset, size_mib * block.size(), 0);
  for (uint64_t i = 0; i < size_mib; ++i) {
    Stir(block);
    WriteRange(dataset, i * block.size(), block);
  }
  Check(H5Dclose(dataset), "H5Dclose");
}

}  // namespace h5mirror::bench
