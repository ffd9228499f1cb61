#include "h5perf_serial/options.h"

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf_serial/option_words.h"
#include "h5perf_serial/settle.h"

namespace h5mirror::perf {
namespace {

enum LongOnly {
  kJson = 1000,
  kCsv,
  kFsync,
  kDropCaches,
  kPattern,
  kData,
  kDeflate,
  kShuffle,
  kChunkCache,
  kSieve,
  kMetaBlock,
  kLibver,
  kPercentiles,
  kCompare,
  kVersion,
};

constexpr char kShort[] = "+:a:A:b:c:D:e:G:hi:o:r:tT:v:wx:";
constexpr option kLong[] = {
    {"align", required_argument, nullptr, 'a'},
    {"api", required_argument, nullptr, 'A'},
    {"page-buffer-size", required_argument, nullptr, 'b'},
    {"chunk", optional_argument, nullptr, 'c'},
    {"debug", required_argument, nullptr, 'D'},
    {"num-bytes", required_argument, nullptr, 'e'},
    {"page-size", required_argument, nullptr, 'G'},
    {"help", no_argument, nullptr, 'h'},
    {"num-iterations", required_argument, nullptr, 'i'},
    {"output", required_argument, nullptr, 'o'},
    {"order", required_argument, nullptr, 'r'},
    {"extendable", no_argument, nullptr, 't'},
    {"threshold", required_argument, nullptr, 'T'},
    {"file-driver", required_argument, nullptr, 'v'},
    {"write-only", no_argument, nullptr, 'w'},
    {"min-xfer-size", required_argument, nullptr, 'x'},
    {"json", no_argument, nullptr, kJson},
    {"csv", no_argument, nullptr, kCsv},
    {"fsync", no_argument, nullptr, kFsync},
    {"drop-caches", no_argument, nullptr, kDropCaches},
    {"pattern", required_argument, nullptr, kPattern},
    {"data", required_argument, nullptr, kData},
    {"deflate", required_argument, nullptr, kDeflate},
    {"shuffle", no_argument, nullptr, kShuffle},
    {"chunk-cache", required_argument, nullptr, kChunkCache},
    {"sieve", required_argument, nullptr, kSieve},
    {"meta-block", required_argument, nullptr, kMetaBlock},
    {"libver", required_argument, nullptr, kLibver},
    {"percentiles", optional_argument, nullptr, kPercentiles},
    {"compare", no_argument, nullptr, kCompare},
    {"version", no_argument, nullptr, kVersion},
    {nullptr, 0, nullptr, 0},
};

absl::Status ReadApis(const std::string& text, Options& options) {
  options.posix = options.hdf5 = false;
  for (const std::string& word : SplitList(text)) {
    if (absl::AsciiStrToLower(word) == "posix") {
      options.posix = true;
    } else if (absl::AsciiStrToLower(word) == "hdf5") {
      options.hdf5 = true;
    } else {
      return absl::InvalidArgumentError(StrCat("-A takes posix and hdf5, not '", word, "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPercentiles(const char* text, Options& options) {
  options.percentiles.clear();
  for (const std::string& word : SplitList(text == nullptr ? "50,90,99" : text)) {
    H5M_ASSIGN_OR_RETURN(const double percent, ParseNumber(word));
    if (!(percent > 0 && percent <= 100)) {
      return absl::InvalidArgumentError(
          StrCat("--percentiles wants numbers above 0, at most 100, not '", word, "'"));
    }
    options.percentiles.push_back(percent);
  }
  return absl::OkStatus();
}

// SIZE[,SLOTS[,PREEMPTION]]
absl::Status ReadChunkCache(const std::string& text, Hdf5Settings& settings) {
  const std::vector<std::string> parts = SplitList(text);
  H5M_ASSIGN_OR_RETURN(settings.chunk_cache_bytes, ParseSize(parts[0]));
  if (parts.size() > 1) {
    H5M_ASSIGN_OR_RETURN(settings.chunk_cache_slots, ParseSize(parts[1]));
  }
  if (parts.size() > 2) {
    H5M_ASSIGN_OR_RETURN(settings.chunk_cache_preemption, ParseNumber(parts[2]));
  }
  const double preemption = settings.chunk_cache_preemption;
  if (parts.size() > 3 || !(preemption >= 0 && preemption <= 1)) {
    return absl::InvalidArgumentError(
        StrCat("--chunk-cache wants SIZE[,SLOTS[,PREEMPTION]] with 0 <= PREEMPTION <= 1, not '",
               text, "'"));
  }
  return absl::OkStatus();
}

absl::Status ReadWord(const std::string& text, const char* what, const char* off, const char* on,
                      bool& value) {
  value = text == on;
  if (value || text == off) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, " is ", off, " or ", on, ", not '", text, "'"));
}

bool TakesSize(int letter) {
  return letter == 'a' || letter == 'T' || letter == 'b' || letter == 'G' || letter == kSieve ||
         letter == kMetaBlock;
}

absl::Status ReadSize(int letter, const char* text, Hdf5Settings& settings) {
  H5M_ASSIGN_OR_RETURN(const uint64_t size, ParseSize(text));
  switch (letter) {
    case 'a':
      settings.alignment = size;
      break;
    case 'T':
      settings.threshold = size;
      break;
    case 'b':
      settings.page_buffer_bytes = size;
      break;
    case 'G':
      settings.page_size_bytes = size;
      break;
    case kSieve:
      settings.sieve_bytes = size;
      break;
    default:
      settings.meta_block_bytes = size;
  }
  return absl::OkStatus();
}

absl::Status ReadDeflate(const std::string& text, Hdf5Settings& settings) {
  H5M_ASSIGN_OR_RETURN(const int64_t level, ParseInteger(text));
  if (level < 0 || level > 9) return absl::InvalidArgumentError("--deflate takes 0 to 9");
  settings.deflate = static_cast<unsigned>(level);
  return absl::OkStatus();
}

absl::Status ReadContents(const std::string& text, Contents& contents) {
  bool random = false;
  H5M_RETURN_IF_ERROR(ReadWord(text, "--data", "tiled", "random", random));
  contents = random ? Contents::kRandom : Contents::kTiled;
  return absl::OkStatus();
}

class Parser {
 public:
  absl::StatusOr<Options> Parse(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"h5perf_serial"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int argc = static_cast<int>(words.size());
    optind = 0;  // Also forgets an earlier call.
    opterr = 0;
    for (int letter; (letter = getopt_long(argc, argv.data(), kShort, kLong, nullptr)) != -1;) {
      if (letter == '?' || letter == ':') {
        return OptionComplaint(letter, argv[optind - 1], kLong);
      }
      H5M_RETURN_IF_ERROR(Take(letter));
      if (options_.help || options_.version) return options_;
    }
    if (optind < argc) {
      return absl::InvalidArgumentError(StrCat("'", argv[optind], "' is no option"));
    }
    H5M_RETURN_IF_ERROR(Settle(given_, options_));
    return options_;
  }

 private:
  absl::Status TakeSizes(const char* text, std::optional<Sizes>& sizes) {
    H5M_ASSIGN_OR_RETURN(sizes, ParseSizes(text));
    return absl::OkStatus();
  }

  absl::Status TakeIterations(const std::string& text) {
    H5M_ASSIGN_OR_RETURN(options_.iterations, ReadIterations(text));
    return absl::OkStatus();
  }

  absl::Status TakeDriver(const std::string& text) {
    H5M_ASSIGN_OR_RETURN(Driver driver, ParseDriver(text));
    options_.drivers.push_back(std::move(driver));
    return absl::OkStatus();
  }

  // The flag that an option without an argument turns on; null: no such option.
  bool* Toggle(int letter) {
    if (letter == 'h') return &options_.help;
    if (letter == 't') return &options_.settings.extendable;
    if (letter == 'w') return &options_.write_only;
    if (letter == kFsync) return &options_.fsync;
    if (letter == kDropCaches) return &options_.drop_caches;
    if (letter == kShuffle) return &options_.settings.shuffle;
    if (letter == kCompare) return &options_.compare;
    if (letter == kVersion) return &options_.version;
    return nullptr;
  }

  absl::Status Take(int letter) {
    if (bool* const toggle = Toggle(letter)) return *toggle = true, absl::OkStatus();
    if (TakesSize(letter)) return ReadSize(letter, optarg, options_.settings);
    const std::string text = optarg == nullptr ? "" : optarg;
    switch (letter) {
      case 'A':
        return ReadApis(text, options_);
      case 'D':
        return ReadDebug(text, options_.debug);
      case 'c':
        given_.chunked = true;
        return optarg == nullptr ? absl::OkStatus() : TakeSizes(optarg, given_.chunk);
      case 'e':
        return TakeSizes(optarg, given_.dataset);
      case 'x':
        return TakeSizes(optarg, given_.buffer);
      case 'r':
        return TakeSizes(optarg, given_.order);
      case 'i':
        return TakeIterations(text);
      case 'v':
        return TakeDriver(text);
      case 'o':
        options_.output = text;
        return absl::OkStatus();
      default:
        return TakeOurs(letter, text);
    }
  }

  // Takes the options that HDF5's own h5perf_serial lacks.
  absl::Status TakeOurs(int option, const std::string& text) {
    switch (option) {
      case kJson:
        options_.format = Format::kJson;
        break;
      case kCsv:
        options_.format = Format::kCsv;
        break;
      case kPattern:
        return ReadWord(text, "--pattern", "sequential", "random", options_.random_order);
      case kData:
        return ReadContents(text, options_.contents);
      case kDeflate:
        return ReadDeflate(text, options_.settings);
      case kChunkCache:
        return ReadChunkCache(text, options_.settings);
      case kLibver:
        options_.settings.libver = text;
        break;
      case kPercentiles:
        return ReadPercentiles(optarg, options_);
    }
    return absl::OkStatus();
  }

  Options options_;
  GivenShape given_;
};

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  return Parser().Parse(arguments);
}

}  // namespace h5mirror::perf
