// Words that both benchmarks read in the same way.
#ifndef H5MIRROR_H5PERF_SERIAL_OPTION_WORDS_H_
#define H5MIRROR_H5PERF_SERIAL_OPTION_WORDS_H_

#include <getopt.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h5mirror::perf {

struct Debug {
  int level = 0;         // 0 to 4: 1 file names, 3 times of each iteration
  bool raw = false;      // blocks of raw data
  bool seconds = false;  // after each rate
  bool verify = false;   // what is read
};

// "2,r,t" into `debug`. kInvalidArgument quotes a word that is none.
absl::Status ReadDebug(std::string_view text, Debug& debug);

// The argument of -i: less than 1 means 1.
absl::StatusOr<int> ReadIterations(std::string_view text);

// What is wrong with `word`, at which getopt_long() returned '?' or ':'; `known` ends with a null
// name.
absl::Status OptionComplaint(int letter, const char* word, const option* known);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_OPTION_WORDS_H_
