#include "h5perf_serial/parameters_text.h"

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "h5perf_serial/report.h"

namespace h5mirror::perf {
namespace {

std::string FilterText(const Hdf5Settings& settings) {
  std::string text;
  if (settings.shuffle) text += "shuffle ";
  if (settings.deflate.has_value()) StrAppend(&text, "deflate(", *settings.deflate, ") ");
  return text;
}

// In the style of the original, for options that it does not have.
std::string PageText(const Hdf5Settings& settings) {
  if (settings.page_size_bytes == 0) return "Page Aggregation Disabled\n";
  std::string text =
      StrCat("Page Aggregation Enabled. Page size = ", settings.page_size_bytes, "\n");
  if (settings.page_buffer_bytes == 0) return text + "Page Buffering Disabled\n";
  StrAppend(&text, "Page Buffering Enabled. Page Buffer size = ", settings.page_buffer_bytes, "\n");
  return text;
}

std::string OrderText(const Shape& shape) {
  std::string text;
  for (const size_t dimension : shape.order) StrAppend(&text, dimension + 1, " ");
  return text;
}

std::string Hdf5Text(const Options& options, const Results& results) {
  std::string text;
  const Hdf5Settings& settings = options.settings;
  StrAppend(&text,
            "HDF5 data storage method=", settings.chunk.has_value() ? "Chunked" : "Contiguous",
            "\n");
  if (settings.chunk.has_value()) {
    StrAppend(&text, "HDF5 chunk size=", SizesText(*settings.chunk), "\n");
    StrAppend(&text, "HDF5 dataset dimensions=", settings.extendable ? "Extendable" : "Fixed",
              "\n");
  }
  for (const Driver& driver : options.drivers) {
    StrAppend(&text, "HDF5 file driver=", driver.label, "\n");
  }
  for (const std::string& line : SettingLines(options, results)) StrAppend(&text, line, "\n");
  return text;
}

}  // namespace

std::vector<std::string> SettingLines(const Options& options, const Results& results) {
  const Hdf5Settings& settings = options.settings;
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& name, const std::string& value) {
    lines.push_back(name + "=" + value);
  };
  if (settings.alignment.has_value() || settings.threshold.has_value()) {
    add("HDF5 alignment", SizeText(settings.alignment.value_or(1)));
    add("HDF5 alignment threshold", SizeText(settings.threshold.value_or(1)));
  }
  if (const std::string filters = FilterText(settings); !filters.empty())
    add("HDF5 filters", filters);
  if (settings.chunk_cache_bytes.has_value()) {
    add("HDF5 chunk cache size", SizeText(*settings.chunk_cache_bytes));
  }
  if (settings.sieve_bytes.has_value())
    add("HDF5 sieve buffer size", SizeText(*settings.sieve_bytes));
  if (settings.meta_block_bytes.has_value()) {
    add("HDF5 metadata block size", SizeText(*settings.meta_block_bytes));
  }
  if (!settings.libver.empty()) add("HDF5 format from", settings.libver);
  if (options.random_order) add("Access pattern", "random");
  if (options.contents == Contents::kRandom) add("Transfer buffer contents", "random");
  if (options.fsync) add("Synced before Close", "yes");
  if (results.dropped.has_value()) {
    add("Page cache before reading",
        *results.dropped == Dropped::kEverything ? "dropped" : "data files dropped");
  }
  return lines;
}

std::string ParametersText(const Options& options, const Results& results) {
  std::string text =
      StrCat("HDF5 Library: Version ", LibraryVersion(), "\n==== Parameters ====\nIO API=");
  StrAppend(&text, options.posix ? "posix " : "", options.hdf5 ? "hdf5 " : "", "\n");
  StrAppend(&text, "Number of iterations=", options.iterations, "\n");
  StrAppend(&text, "Dataset size=", SizesText(options.shape.dataset), "\n");
  StrAppend(&text, "Transfer buffer size=", SizesText(options.shape.buffer), "\n");
  text += PageText(options.settings);
  StrAppend(&text, "Dimension access order=", OrderText(options.shape), "\n");
  if (options.hdf5) text += Hdf5Text(options, results);
  StrAppend(&text, "Env HDF5_PREFIX=", PrefixText(), "\n==== End of Parameters ====\n\n");
  StrAppend(&text, "Transfer Buffer Size (bytes): ", options.shape.buffer_bytes(), "\n");
  text += absl::StrFormat("File Size(MB): %.2f\n",
                          static_cast<double>(options.shape.dataset_bytes()) / kMegabyte);
  return text;
}

}  // namespace h5mirror::perf
