// h5perf_serial from its arguments to its exit code.
#ifndef H5MIRROR_H5PERF_SERIAL_RUN_PERF_H_
#define H5MIRROR_H5PERF_SERIAL_RUN_PERF_H_

#include <ostream>
#include <string>
#include <vector>

#include "cli/process/stop_signal.h"

namespace h5mirror::perf {

// Runs one command line, without the program's name. 0 where a report was written whole, else 1
// and one line on `err`, and 128+n after signal n, with its files removed. `progress`: a terminal,
// or null; `stop`: null where nobody notes signals.
int RunPerf(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
            std::ostream* progress, const tools::StopSignal* stop = nullptr);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_RUN_PERF_H_
