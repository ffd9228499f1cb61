// h5perf: see h5perf.1.md.
#include <mpi.h>

#include <iostream>

#include "h5perf/run_h5perf.h"

int main(int argc, char** argv) {
  // StopWatch has a thread; it calls no MPI.
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int code = h5mirror::pperf::RunH5perf({argv + 1, argv + argc}, MPI_COMM_WORLD, std::cout);
  MPI_Finalize();
  return code;
}
