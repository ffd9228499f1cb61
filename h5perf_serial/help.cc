#include "h5perf_serial/help.h"

namespace h5mirror::perf {

std::string HelpText() {
  return R"(usage: h5perf_serial [OPTIONS]

Writes one dataset of bytes by moving a transfer buffer over it, reads it the same way, and reports
the throughput: through POSIX calls, and through HDF5 with any of its file drivers.

What is moved:
  -e, --num-bytes SIZES        the dataset's dimensions               [100,200]
  -x, --min-xfer-size SIZES    the transfer buffer's                  [10,20]
  -r, --order NUMBERS          dimensions, the fastest moving first   [1,2]
      --pattern random         buffers in random order                [sequential]
      --data random            noise in the buffer                    [tiled: byte k is k mod 128]
  -i, --num-iterations N       files that are written and read        [1]
  -w, --write-only             do not read
      --fsync                  sync before the close
      --drop-caches            empty the page cache before reading

Through what:
  -A, --api LIST               posix, hdf5                            [both]
  -v, --file-driver DRIVER     sec2, stdio, core, split, multi, family, direct, splitter, onion, mig
                               (h5mirror's metadata=memory), or a plugin with its configuration:
                               h5mirror:server=HOST,ack=none          [sec2]
      --compare                several -v side by side, in turns

HDF5's settings:
  -c SIZES, --chunk[=SIZES]    a chunked dataset                      [contiguous; 10,20]
  -t, --extendable             that grows as it is written; with -c
      --deflate LEVEL          compress chunks, 0 to 9
      --shuffle                shuffle their bytes before
      --chunk-cache SIZE[,SLOTS[,PREEMPTION]]
  -a, --align SIZE             objects begin at multiples of it       [1]
  -T, --threshold SIZE         those that are at least so large       [1]
  -G, --page-size SIZE         file space in pages
  -b, --page-buffer-size SIZE  and a buffer of pages; with -G
      --sieve SIZE             the sieve buffer
      --meta-block SIZE        the metadata block
      --libver BOUND           the oldest format: earliest, v18, v110, v112, v114, latest

The report:
  -o, --output FILE            where it goes                          [standard output]
      --json, --csv            for programs
      --percentiles[=NUMBERS]  of the times, as rates, in the text    [50,90,99]
  -D, --debug LIST             1 data file names; 3 times of each iteration; 4 a line above them;
                               r raw data; t seconds; v compare what is read
  -h, --help                   this
      --version

  SIZES are separated by commas, one a dimension, the slowest first; K, M and G are powers of 1024.
  HDF5_PREFIX is the directory of the data files, HDF5_NOCLEANUP keeps them.
  Exit codes: 0 measured, 1 not; then there is no report, and one line says why.
)";
}

}  // namespace h5mirror::perf
