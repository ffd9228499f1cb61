// The head of the text report: what was measured.
#ifndef H5MIRROR_H5PERF_SERIAL_PARAMETERS_TEXT_H_
#define H5MIRROR_H5PERF_SERIAL_PARAMETERS_TEXT_H_

#include <string>

#include "h5perf_serial/options.h"
#include "h5perf_serial/run.h"

namespace h5mirror::perf {

std::string ParametersText(const Options& options, const Results& results);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_PARAMETERS_TEXT_H_
