// h5perf from its arguments to its exit code.
#ifndef H5MIRROR_H5PERF_RUN_H5PERF_H_
#define H5MIRROR_H5PERF_RUN_H5PERF_H_

#include <mpi.h>

#include <ostream>
#include <string>
#include <vector>

namespace h5mirror::pperf {

// Runs one command line, without the program's name, by all processes of `world`; those of the
// first process count. It alone writes, on `out`. 0 where a report was written whole, else 1, and
// one line on standard error says why. MPI_Init() has been called.
int RunH5perf(std::vector<std::string> arguments, MPI_Comm world, std::ostream& out);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_RUN_H5PERF_H_
