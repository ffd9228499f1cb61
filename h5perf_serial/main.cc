// h5perf_serial: see h5perf_serial.1.md.
#include <unistd.h>

#include <iostream>

#include "base/standard_streams.h"
#include "h5perf_serial/run_perf.h"

int main(int argc, char** argv) {
  h5mirror::HoldStandardStreams();
  std::ostream* progress = isatty(STDERR_FILENO) ? &std::cerr : nullptr;
  const h5mirror::tools::StopSignal stop;
  return h5mirror::perf::RunPerf({argv + 1, argv + argc}, std::cout, std::cerr, progress, &stop);
}
