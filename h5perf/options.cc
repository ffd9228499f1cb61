#include "h5perf/options.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf/settle.h"
#include "h5perf_serial/sizes.h"

namespace h5mirror::pperf {
namespace {

enum LongOnly { kJson = 1000, kCompare, kVersionOption };

constexpr char kShort[] = "+:a:A:B:cCd:D:e:F:ghi:Io:p:P:T:v:wx:X:";
constexpr option kLong[] = {
    {"align", required_argument, nullptr, 'a'},
    {"api", required_argument, nullptr, 'A'},
    {"block-size", required_argument, nullptr, 'B'},
    {"chunk", no_argument, nullptr, 'c'},
    {"collective", no_argument, nullptr, 'C'},
    {"num-dsets", required_argument, nullptr, 'd'},
    {"debug", required_argument, nullptr, 'D'},
    {"num-bytes", required_argument, nullptr, 'e'},
    {"num-files", required_argument, nullptr, 'F'},
    {"geometry", no_argument, nullptr, 'g'},
    {"help", no_argument, nullptr, 'h'},
    {"num-iterations", required_argument, nullptr, 'i'},
    {"interleaved", no_argument, nullptr, 'I'},
    {"output", required_argument, nullptr, 'o'},
    {"min-num-processes", required_argument, nullptr, 'p'},
    {"max-num-processes", required_argument, nullptr, 'P'},
    {"threshold", required_argument, nullptr, 'T'},
    {"driver", required_argument, nullptr, 'v'},
    {"write-only", no_argument, nullptr, 'w'},
    {"min-xfer-size", required_argument, nullptr, 'x'},
    {"max-xfer-size", required_argument, nullptr, 'X'},
    {"json", no_argument, nullptr, kJson},
    {"compare", no_argument, nullptr, kCompare},
    {"version", no_argument, nullptr, kVersionOption},
    {nullptr, 0, nullptr, 0},
};

absl::StatusOr<std::vector<Api>> ReadApis(const std::string& text) {
  std::set<Api> apis;
  for (const std::string& word : perf::SplitList(text)) {
    const std::string lower = absl::AsciiStrToLower(word);
    int api = 0;
    while (api < kApiCount && lower != ApiName(static_cast<Api>(api))) ++api;
    if (api == kApiCount) {
      return absl::InvalidArgumentError(
          StrCat("-A takes posix, mpiio and phdf5, separated by commas, not '", word, "'"));
    }
    apis.insert(static_cast<Api>(api));
  }
  return std::vector<Api>(apis.begin(), apis.end());
}

// Says which option the number is of.
template <typename T>
absl::Status Into(char letter, const absl::StatusOr<T>& number, T& value) {
  if (!number.ok()) {
    return absl::InvalidArgumentError(
        StrCat("-", std::string(1, letter), ": ", ToStd(number.status().message())));
  }
  value = *number;
  return absl::OkStatus();
}

absl::Status ReadCount(char letter, const std::string& text, uint64_t& value) {
  int64_t count = 0;
  H5M_RETURN_IF_ERROR(Into(letter, perf::ParseInteger(text), count));
  if (count < 0 || count > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(StrCat("-", std::string(1, letter), " takes 0 to ",
                                             std::numeric_limits<int>::max(), ", not ", text));
  }
  value = static_cast<uint64_t>(count);
  return absl::OkStatus();
}

class Parser {
 public:
  explicit Parser(int ranks) : ranks_(ranks) { options_.processes_max = ranks; }

  absl::StatusOr<Options> Parse(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"h5perf"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int argc = static_cast<int>(words.size());
    optind = 0;  // Also forgets an earlier call.
    opterr = 0;
    for (int letter; (letter = getopt_long(argc, argv.data(), kShort, kLong, nullptr)) != -1;) {
      if (letter == '?' || letter == ':') {
        return perf::OptionComplaint(letter, argv[optind - 1], kLong);
      }
      H5M_RETURN_IF_ERROR(Take(letter));
      if (options_.help || options_.version) return options_;
    }
    if (optind < argc) {
      return absl::InvalidArgumentError(StrCat("'", argv[optind], "' is no option"));
    }
    H5M_RETURN_IF_ERROR(Settle(ranks_, options_));
    return options_;
  }

 private:
  // The flag that an option without an argument turns on; null: no such option.
  bool* Toggle(int letter) {
    const std::array<std::pair<int, bool*>, 10> toggles = {{
        {'c', &options_.workload.chunked},
        {'C', &options_.workload.collective},
        {'g', &options_.workload.two_d},
        {'I', &options_.workload.interleaved},
        {'h', &options_.help},
        {'w', &options_.write_only},
        {kJson, &options_.json},
        {kCompare, &options_.compare},
        {kVersionOption, &options_.version},
    }};
    for (const auto& [option, value] : toggles) {
      if (option == letter) return value;
    }
    return nullptr;
  }

  // The target of an option with a size; null: no such option.
  uint64_t* Size(int letter) {
    const std::array<std::pair<int, uint64_t*>, 6> sizes = {{
        {'a', &options_.alignment},
        {'B', &options_.workload.block},
        {'e', &options_.workload.bytes_per_process},
        {'T', &options_.threshold},
        {'x', &options_.buffer_min},
        {'X', &options_.buffer_max},
    }};
    for (const auto& [option, value] : sizes) {
      if (option == letter) return value;
    }
    return nullptr;
  }

  absl::Status Take(int letter) {
    if (bool* const toggle = Toggle(letter)) return *toggle = true, absl::OkStatus();
    const std::string text = optarg;
    const char name = static_cast<char>(letter);
    if (uint64_t* const size = Size(letter)) return Into(name, perf::ParseSize(text), *size);
    switch (letter) {
      case 'A': {
        H5M_ASSIGN_OR_RETURN(options_.apis, ReadApis(text));
        return absl::OkStatus();
      }
      case 'd':
        return ReadCount(name, text, options_.workload.datasets);
      case 'F':
        return ReadCount(name, text, options_.workload.files);
      case 'D':
        return perf::ReadDebug(text, options_.debug);
      case 'i':
        return Into(name, perf::ReadIterations(text), options_.iterations);
      case 'p':
        return TakeProcesses(name, text, options_.processes_min);
      case 'P':
        return TakeProcesses(name, text, options_.processes_max);
      case 'v':
        return TakeDriver(text);
      default:
        options_.output = text;
    }
    return absl::OkStatus();
  }

  // Less than 1 means 1, as in the original.
  absl::Status TakeProcesses(char letter, const std::string& text, int& value) {
    int64_t count = 0;
    H5M_RETURN_IF_ERROR(Into(letter, perf::ParseInteger(text), count));
    if (count > ranks_) {
      return absl::InvalidArgumentError(
          StrCat("-", std::string(1, letter), " ", text, " is more than the ", ranks_,
                 " process(es) that MPI started; start more with mpirun -n"));
    }
    value = static_cast<int>(std::max<int64_t>(count, 1));
    return absl::OkStatus();
  }

  absl::Status TakeDriver(const std::string& text) {
    H5M_ASSIGN_OR_RETURN(Driver driver, perf::ParseDriverName(text));
    options_.drivers.push_back(std::move(driver));
    return absl::OkStatus();
  }

  const int ranks_;
  Options options_;
};

}  // namespace

const char* ApiName(Api api) {
  constexpr std::array<const char*, kApiCount> kNames = {"posix", "mpiio", "phdf5"};
  return kNames[static_cast<size_t>(api)];
}

std::vector<int> Options::Processes() const {
  std::vector<int> counts;
  for (int count = processes_max; count >= processes_min; count /= 2) counts.push_back(count);
  return counts;
}

std::vector<uint64_t> Options::Buffers() const {
  std::vector<uint64_t> sizes;
  for (uint64_t size = buffer_min; size <= buffer_max; size *= 2) sizes.push_back(size);
  return sizes;
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments, int ranks) {
  return Parser(ranks).Parse(arguments);
}

}  // namespace h5mirror::pperf
