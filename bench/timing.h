// Clocks, and the handshake with which the bench's programs wait for their start.
#ifndef H5MIRROR_BENCH_TIMING_H_
#define H5MIRROR_BENCH_TIMING_H_

#include <string>

namespace h5mirror::bench {

// CLOCK_MONOTONIC, the same for all processes: as Python's time.monotonic().
double NowSeconds();

// CPU time of all threads of this process, user and system.
double CpuSeconds();

// Tells the starter that all is warm, and waits for its line. Meanwhile the starter lets the disk
// settle and reads the server's clocks. Throws Hdf5Error if stdin ends first.
void WaitForStart();

// Throws Hdf5Error.
void SyncFile(const std::string& path);

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_TIMING_H_
