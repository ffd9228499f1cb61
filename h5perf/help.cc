#include "h5perf/help.h"

namespace h5mirror::pperf {

std::string HelpText() {
  return R"(usage: mpirun -n PROCESSES h5perf [OPTIONS]

All processes write datasets of bytes together, read them back, and the first one reports the
throughput: through POSIX calls, MPI-IO, and parallel HDF5 with a driver that knows MPI.

What is moved:
  -e, --num-bytes SIZE           bytes of a process in each dataset; with -g a
                                 side, of a square of SIZE x processes       [256K; 8K]
  -B, --block-size SIZE          a block, with -g its side                   [half of -e]
  -x, --min-xfer-size SIZE       transfer buffers from this size             [half of -e]
  -X, --max-xfer-size SIZE       to this one, doubled each time              [-e]
  -g, --geometry                 square datasets                             [a line of bytes]
  -I, --interleaved              a block of each process in turn             [a part of its own]
  -d, --num-dsets N              datasets in each file                       [1]
  -F, --num-files N              files                                       [1]
  -p, --min-num-processes N      processes that measure, to this count       [1]
  -P, --max-num-processes N      from this one, halved each time             [all]
  -i, --num-iterations N         each time                                   [1]
  -w, --write-only               do not read

Through what:
  -A, --api LIST                 posix, mpiio, phdf5                         [all]
  -C, --collective               transfers are collective: mpiio, phdf5      [independent]
  -v, --driver DRIVER            of phdf5: mpio, or a plugin with its configuration:
                                 h5mirror:server=HOST,ack=none               [mpio]
      --compare                  several -v side by side, in turns

HDF5's settings:
  -c, --chunk                    chunks of the block's size; with -g also the
                                 order of posix and mpiio                    [contiguous]
  -a, --align SIZE               objects begin at multiples of it            [1]
  -T, --threshold SIZE           those that are at least so large            [1]

The report:
  -o, --output FILE              where it goes                               [standard output]
      --json                     for programs
  -D, --debug LIST               1 data file names; 3 times of each iteration; 4 a line above them;
                                 r raw data; t seconds; v compare what is read
  -h, --help                     this
      --version

  SIZE may end in K, M or G, powers of 1024; 0 is the default.
  HDF5_PARAPREFIX is the directory of the data files, HDF5_NOCLEANUP keeps them, HDF5_MPI_INFO has
  hints for MPI-IO: key=value;key=value. Those of the first process count.
  Exit codes: 0 measured, 1 not; then there is no report, and one line says why.
)";
}

}  // namespace h5mirror::pperf
