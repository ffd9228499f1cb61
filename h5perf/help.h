// The text of -h.
#ifndef H5MIRROR_H5PERF_HELP_H_
#define H5MIRROR_H5PERF_HELP_H_

#include <string>

namespace h5mirror::pperf {

std::string HelpText();

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_HELP_H_
