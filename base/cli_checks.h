// Checks of the values of flags, in plain words: a message quotes the value and says which values
// are allowed. CLI11 puts the flag's name before it ("--limit: '0' is no whole number of 1 or
// more").
#ifndef H5MIRROR_BASE_CLI_CHECKS_H_
#define H5MIRROR_BASE_CLI_CHECKS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"

namespace h5mirror {

// A decimal number from `min` to `max`, both included. Without a `max` the message says only the
// lower end.
CLI::Validator WholeNumber(int64_t min, int64_t max = std::numeric_limits<int64_t>::max());

// A finite number from `min` to `max`, both included, as `2.5`.
CLI::Validator AnyNumber(double min, double max);

// A duration as ParseDuration() takes it, from `min` to `max`, both included.
CLI::Validator DurationFrom(absl::Duration min, absl::Duration max);

// One of `words`; the message lists them, and the nearest one.
CLI::Validator OneWordOf(std::vector<std::string> words);

// For Option::transform(): turns one of the words of `values` into its value. Refuses the numbers
// behind the words.
template <typename Enum>
CLI::Validator OneOfEnum(std::map<std::string, Enum> values) {
  std::vector<std::string> words;
  for (const auto& [word, value] : values) words.push_back(word);
  const CLI::Validator is_known = OneWordOf(std::move(words));
  return CLI::Validator(
      [is_known, values = std::move(values)](std::string& text) {
        std::string wrong = is_known(text);
        if (wrong.empty()) text = std::to_string(static_cast<int64_t>(values.at(text)));
        return wrong;
      },
      "");
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CLI_CHECKS_H_
