// The report, in each of its forms.
#ifndef H5MIRROR_H5PERF_REPORT_H_
#define H5MIRROR_H5PERF_REPORT_H_

#include <cstdint>
#include <string>

#include "h5perf/options.h"
#include "h5perf/results.h"

namespace h5mirror::pperf {

// Of all files and datasets.
uint64_t BytesOf(const Options& options, int processes);

// What was asked for; `library` is HDF5's version, `hint_bytes` the longest hint that MPI takes.
std::string ParametersText(const Options& options, const Environment& environment,
                           const std::string& library, int hint_bytes);
// Laid out as the original's, of its first process.
std::string TextReport(const Options& options, const Results& results, const std::string& library,
                       int hint_bytes);
// Keys are listed in h5perf.1.md.
std::string JsonReport(const Options& options, const Results& results, const std::string& library);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_REPORT_H_
