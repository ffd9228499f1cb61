// The recipes of bench_tuning, from the talk of 2002 on HDF5's performance.
#ifndef H5MIRROR_BENCH_TUNING_RECIPES_H_
#define H5MIRROR_BENCH_TUNING_RECIPES_H_

#include <hdf5.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/tuning_settings.h"

namespace h5mirror::bench {

struct TuningJob {
  hid_t file;
  const TuningSettings& settings;
  uint64_t count;                      // objects, or rows of the dataset
  const std::vector<int32_t>& values;  // as many as the recipe wants
};

// Figures by name. A name that ends in _s has seconds.
using TuningFigures = std::map<std::string, double>;

struct TuningRecipe {
  const char* name;
  const char* what;
  // How many values the recipe writes from; they are made before the clock starts.
  uint64_t (*value_count)(uint64_t count);
  // Leaves no object of the file open; throws Hdf5Error.
  TuningFigures (*run)(const TuningJob& job);
};

std::span<const TuningRecipe> TuningRecipes();

// Whole numbers of 0 to 255, as in the talk; the same at each run.
std::vector<int32_t> RandomValues(uint64_t count);

// nullptr: there is none of that name.
const TuningRecipe* FindTuningRecipe(const std::string& name);

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_TUNING_RECIPES_H_
