#include "h5perf_serial/option_words.h"

#include <algorithm>
#include <vector>

#include "base/nearest_name.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf_serial/sizes.h"

namespace h5mirror::perf {

absl::Status ReadDebug(std::string_view text, Debug& debug) {
  for (const std::string& word : SplitList(text)) {
    if (word.size() == 1 && word[0] >= '0' && word[0] <= '4') {
      debug.level = word[0] - '0';
    } else if (word == "r") {
      debug.raw = true;
    } else if (word == "t") {
      debug.seconds = true;
    } else if (word == "v") {
      debug.verify = true;
    } else {
      return absl::InvalidArgumentError(StrCat("-D takes 0 to 4, r, t and v, not '", word, "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ReadIterations(std::string_view text) {
  H5M_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(text));
  return static_cast<int>(std::clamp<int64_t>(number, 1, 1'000'000));
}

absl::Status OptionComplaint(int letter, const char* word, const option* known) {
  if (letter == ':') return absl::InvalidArgumentError(StrCat(word, " wants an argument"));
  std::vector<std::string> names;
  for (; known->name != nullptr; ++known) {
    names.push_back(StrCat("--", known->name));
  }
  const std::string_view nearest =
      NearestName(word, std::vector<std::string_view>(names.begin(), names.end()));
  return absl::InvalidArgumentError(StrCat(
      "unknown option ", word, nearest.empty() ? "" : StrCat("; did you mean ", nearest, "?")));
}

}  // namespace h5mirror::perf
