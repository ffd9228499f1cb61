// The report, in each of its forms.
#ifndef H5MIRROR_H5PERF_SERIAL_REPORT_H_
#define H5MIRROR_H5PERF_SERIAL_REPORT_H_

#include <string>

#include "h5perf_serial/options.h"
#include "h5perf_serial/run.h"

namespace h5mirror::perf {

// "1.14.5", of the library that is running.
std::string LibraryVersion();

// HDF5's settings that differ from the default, one each: "HDF5 sieve buffer size=64KB".
std::vector<std::string> SettingLines(const Options& options, const Results& results);

// Laid out byte for byte as the original's where the original has the options; what was asked for
// beyond that follows in lines of its own.
std::string TextReport(const Options& options, const Results& results);
// Times of drivers side by side, with their ratios to the first one.
std::string CompareReport(const Options& options, const Results& results);
// Keys are listed in h5perf_serial.1.md.
std::string JsonReport(const Options& options, const Results& results);
// One line for each time of each iteration.
std::string CsvReport(const Options& options, const Results& results);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_REPORT_H_
