#include "bench/tuning_recipes.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "bench/timing.h"
#include "bench/workloads.h"

namespace h5mirror::bench {
namespace {

using Values = std::vector<int32_t>;

hid_t Space(const std::vector<hsize_t>& dimensions) {
  return Check(H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr),
               "H5Screate_simple");
}

// Makes a dataset and closes the objects that it was made from.
hid_t MakeDataset(const TuningJob& job, const std::string& name, hid_t type,
                  const std::vector<hsize_t>& dimensions, const std::vector<hsize_t>& chunk) {
  const hid_t space = Space(dimensions);
  const hid_t dcpl = MakeDcpl(job.settings, chunk);
  const hid_t dataset =
      Check(H5Dcreate2(job.file, name.c_str(), type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT),
            "H5Dcreate2");
  H5Pclose(dcpl);
  H5Sclose(space);
  return dataset;
}

void WriteAll(hid_t dataset, hid_t dxpl, const Values& values) {
  Check(H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, dxpl, values.data()), "H5Dwrite");
}

// 4.2 to 4.6: int32 of 256 x rows x 1024 in chunks of 256 x 16 x 1024, written by one call.
TuningFigures Slab(const TuningJob& job) {
  const std::vector<hsize_t> dimensions = {256, job.count, 1024};
  const double start_s = NowSeconds();
  const hid_t dataset = MakeDataset(job, "slab", H5T_STD_I32LE, dimensions, {256, 16, 1024});
  const double created_s = NowSeconds();
  WriteAll(dataset, H5P_DEFAULT, job.values);
  const double written_s = NowSeconds();
  Check(H5Dclose(dataset), "H5Dclose");
  return {{"write_s", written_s - created_s},
          {"from_open_s", NowSeconds() - start_s},
          {"chunk_s", (written_s - created_s) / static_cast<double>((job.count + 15) / 16)}};
}

// 4.1: one file, many small datasets with 2 to 5 attributes each, and their raw data in between.
TuningFigures Attributes(const TuningJob& job) {
  const Values& values = job.values;
  const hid_t attribute_space = Space({4});
  for (uint64_t number = 0; number < job.count; ++number) {
    const hid_t dataset =
        MakeDataset(job, "dataset" + std::to_string(number), H5T_STD_I32LE, {values.size()}, {});
    for (uint64_t attribute = 0; attribute < 2 + number % 4; ++attribute) {
      const hid_t id = Check(H5Acreate2(dataset, ("attribute" + std::to_string(attribute)).c_str(),
                                        H5T_STD_I32LE, attribute_space, H5P_DEFAULT, H5P_DEFAULT),
                             "H5Acreate2");
      Check(H5Awrite(id, H5T_NATIVE_INT32, values.data()), "H5Awrite");
      H5Aclose(id);
    }
    WriteAll(dataset, H5P_DEFAULT, values);
    Check(H5Dclose(dataset), "H5Dclose");
  }
  H5Sclose(attribute_space);
  return {};
}

void ReadChunk(hid_t dataset, uint64_t chunk, hsize_t elements, hsize_t chunk_elements,
               Values& values) {
  const hsize_t start = chunk * chunk_elements;
  const hid_t file_space = Check(H5Dget_space(dataset), "H5Dget_space");
  Check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, nullptr, &elements, nullptr),
        "H5Sselect_hyperslab");
  const hid_t memory = Space({elements});
  Check(H5Dread(dataset, H5T_NATIVE_INT32, memory, file_space, H5P_DEFAULT, values.data()),
        "H5Dread");
  H5Sclose(memory);
  H5Sclose(file_space);
}

constexpr hsize_t kChunkElements = 16384;
constexpr uint64_t kHot = 12, kCold = 8;

// 4.7: a cache of 16 chunks. Each round reads a little of 12 of them; in between 8 other chunks are
// read whole, and never again.
TuningFigures Reread(const TuningJob& job) {
  const uint64_t chunks = kHot + kCold * job.count;
  const hid_t dataset =
      MakeDataset(job, "reread", H5T_STD_I32LE, {chunks * kChunkElements}, {kChunkElements});
  WriteAll(dataset, H5P_DEFAULT, job.values);
  Check(H5Fflush(job.file, H5F_SCOPE_LOCAL), "H5Fflush");
  Values values(kChunkElements);
  const double start_s = NowSeconds();
  for (uint64_t round = 0; round < job.count; ++round) {
    for (uint64_t hot = 0; hot < kHot; ++hot) ReadChunk(dataset, hot, 16, kChunkElements, values);
    for (uint64_t cold = 0; cold < kCold; ++cold) {
      ReadChunk(dataset, kHot + round * kCold + cold, kChunkElements, kChunkElements, values);
    }
  }
  const double read_s = NowSeconds() - start_s;
  Check(H5Dclose(dataset), "H5Dclose");
  return {{"read_s", read_s}};
}

// 4.8: datasets of 4 KB; after each tenth the latest one is read.
TuningFigures Small(const TuningJob& job) {
  const Values& values = job.values;
  Values read(values.size());
  double write_s = 0, read_s = 0;
  for (uint64_t number = 0; number < job.count; ++number) {
    const std::string name = "small" + std::to_string(number);
    const double start_s = NowSeconds();
    const hid_t dataset = MakeDataset(job, name, H5T_STD_I32LE, {values.size()}, {});
    WriteAll(dataset, H5P_DEFAULT, values);
    Check(H5Dclose(dataset), "H5Dclose");
    const double written_s = NowSeconds();
    write_s += written_s - start_s;
    if (number % 10 != 9) continue;
    const hid_t latest = Check(H5Dopen2(job.file, name.c_str(), H5P_DEFAULT), "H5Dopen2");
    Check(H5Dread(latest, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), "H5Dread");
    H5Dclose(latest);
    read_s += NowSeconds() - written_s;
  }
  return {{"write_s", write_s}, {"read_s", read_s}};
}

// 4.9: a write that converts little-endian to big-endian, `count` MiB.
TuningFigures Convert(const TuningJob& job) {
  const Values& values = job.values;
  const hid_t dataset = MakeDataset(job, "convert", H5T_STD_I32BE, {values.size()}, {});
  const hid_t dxpl = MakeDxpl(job.settings);
  const double start_s = NowSeconds();
  WriteAll(dataset, dxpl, values);
  const double write_s = NowSeconds() - start_s;
  H5Pclose(dxpl);
  Check(H5Dclose(dataset), "H5Dclose");
  return {{"write_s", write_s}};
}

// 4.10: each second element of a contiguous dataset of `count` MiB, 1024 elements a call.
TuningFigures Sieve(const TuningJob& job) {
  const hsize_t elements = job.count << 18, stride = 2, part = 1024;
  const Values& values = job.values;
  const hid_t dataset = MakeDataset(job, "sieve", H5T_STD_I32LE, {elements}, {});
  const hid_t memory = Space({part});
  const hid_t space = Check(H5Dget_space(dataset), "H5Dget_space");
  const double start_s = NowSeconds();
  for (hsize_t start = 0; start < elements; start += stride * part) {
    Check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &part, nullptr),
          "H5Sselect_hyperslab");
    Check(H5Dwrite(dataset, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values.data()),
          "H5Dwrite");
  }
  const double write_s = NowSeconds() - start_s;
  H5Sclose(space);
  H5Sclose(memory);
  Check(H5Dclose(dataset), "H5Dclose");
  return {{"write_s", write_s}};
}

// 4.11: a dataset of `count` MiB is made, and then written whole.
TuningFigures Fill(const TuningJob& job) {
  const Values& values = job.values;
  const std::vector<hsize_t> chunk =
      job.settings.chunked ? std::vector<hsize_t>{1 << 18} : std::vector<hsize_t>{};
  const double start_s = NowSeconds();
  const hid_t dataset = MakeDataset(job, "fill", H5T_STD_I32LE, {values.size()}, chunk);
  const double created_s = NowSeconds();
  WriteAll(dataset, H5P_DEFAULT, values);
  const double written_s = NowSeconds();
  Check(H5Dclose(dataset), "H5Dclose");
  return {{"create_s", created_s - start_s}, {"write_s", written_s - created_s}};
}

// 4.12: datasets of 500 to 8000 bytes; `misaligned`: the datasets from the threshold on that do not
// begin at a multiple of the alignment.
TuningFigures Aligned(const TuningJob& job) {
  const Values& values = job.values;
  std::mt19937 generator(2002);
  const auto threshold = static_cast<hsize_t>(job.settings.threshold_bytes);
  const auto alignment = static_cast<haddr_t>(std::max<int64_t>(job.settings.alignment_bytes, 1));
  double misaligned = 0, at_pages = 0;
  for (uint64_t number = 0; number < job.count; ++number) {
    const hsize_t elements = 125 + generator() % 1876;
    const hid_t dataset =
        MakeDataset(job, "aligned" + std::to_string(number), H5T_STD_I32LE, {elements}, {});
    WriteAll(dataset, H5P_DEFAULT, values);
    const haddr_t offset = H5Dget_offset(dataset);
    misaligned += elements * 4 >= threshold && offset % alignment != 0;
    at_pages += offset % 4096 == 0;
    Check(H5Dclose(dataset), "H5Dclose");
  }
  return {{"misaligned", misaligned}, {"at_pages", at_pages}};
}

// 4.18: objects that are made, closed, opened and closed again.
TuningFigures Garbage(const TuningJob& job, bool collect) {
  const Values& values = job.values;
  for (uint64_t number = 0; number < job.count; ++number) {
    const std::string name = "group" + std::to_string(number);
    H5Gclose(Check(H5Gcreate2(job.file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                   "H5Gcreate2"));
    const hid_t dataset = MakeDataset(job, name + "/d", H5T_STD_I32LE, {values.size()}, {});
    WriteAll(dataset, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Dclose(Check(H5Dopen2(job.file, (name + "/d").c_str(), H5P_DEFAULT), "H5Dopen2"));
    if (collect && number % 1000 == 999) Check(H5garbage_collect(), "H5garbage_collect");
  }
  return {};
}

TuningFigures Kept(const TuningJob& job) { return Garbage(job, false); }
TuningFigures Collected(const TuningJob& job) { return Garbage(job, true); }

uint64_t SlabValues(uint64_t count) { return 256 * count * 1024; }
uint64_t RereadValues(uint64_t count) { return (kHot + kCold * count) * kChunkElements; }
uint64_t MibValues(uint64_t count) { return count << 18; }
template <uint64_t values>
uint64_t Always(uint64_t) {
  return values;
}

constexpr std::array kRecipes = {
    TuningRecipe{"slab", "int32 of 256 x COUNT x 1024, in chunks of 16 MiB", SlabValues, Slab},
    TuningRecipe{"attributes", "COUNT small datasets with attributes", Always<100>, Attributes},
    TuningRecipe{"reread", "COUNT rounds of chunks that are read again, and ones that are not",
                 RereadValues, Reread},
    TuningRecipe{"small", "COUNT datasets of 4 KB", Always<1024>, Small},
    TuningRecipe{"convert", "COUNT MiB that are converted", MibValues, Convert},
    TuningRecipe{"sieve", "each second element of COUNT MiB", Always<1024>, Sieve},
    TuningRecipe{"fill", "COUNT MiB made and then written", MibValues, Fill},
    TuningRecipe{"aligned", "COUNT datasets of 500 to 8000 bytes", Always<2001>, Aligned},
    TuningRecipe{"kept", "COUNT objects made and opened", Always<64>, Kept},
    TuningRecipe{"collected", "the same with H5garbage_collect", Always<64>, Collected},
};

}  // namespace

std::vector<int32_t> RandomValues(uint64_t count) {
  Values values(count);
  std::mt19937 generator(2002);
  for (int32_t& value : values) value = static_cast<int32_t>(generator() & 0xff);
  return values;
}

std::span<const TuningRecipe> TuningRecipes() { return kRecipes; }

const TuningRecipe* FindTuningRecipe(const std::string& name) {
  for (const TuningRecipe& recipe : kRecipes) {
    if (name == recipe.name) return &recipe;
  }
  return nullptr;
}

}  // namespace h5mirror::bench
