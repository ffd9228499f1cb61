// What -h prints.
#ifndef H5MIRROR_H5PERF_SERIAL_HELP_H_
#define H5MIRROR_H5PERF_SERIAL_HELP_H_

#include <string>

namespace h5mirror::perf {

std::string HelpText();

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_HELP_H_
