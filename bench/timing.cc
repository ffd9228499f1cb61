#include "bench/timing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "bench/workloads.h"

namespace h5mirror::bench {

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void WaitForStart() {
  std::cout << "ready" << std::endl;
  std::string line;
  if (!std::getline(std::cin, line)) throw Hdf5Error("stdin was closed before the start");
}

void SyncFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::fsync(fd) != 0) throw Hdf5Error("cannot sync " + path);
  ::close(fd);
}

}  // namespace h5mirror::bench
