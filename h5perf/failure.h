// The end of a run in which a process failed.
#ifndef H5MIRROR_H5PERF_FAILURE_H_
#define H5MIRROR_H5PERF_FAILURE_H_

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "cli/process/stop_signal.h"

namespace h5mirror::pperf {

// The data files that the run makes, so that the process that ends the run can remove them. A name
// stays after its file's removal: only the removing process knows of that, and it may have died.
// Thread-safe.
class DataFiles {
 public:
  void Add(const std::string& file);
  // With the record of a mirror beside each. What is not there is no error.
  void RemoveAll();

 private:
  std::mutex mutex_;
  std::set<std::string> files_;
};

// While it lives, SIGINT, SIGTERM and SIGHUP remove the data files and end the process with 128+n:
// a process that waits for another one in MPI sees no signal, and MPI's starter sends one to the
// others where one process died. It says nothing: the starter does. It runs a thread of its own,
// which calls no MPI.
class StopWatch {
 public:
  // `files` must outlive it.
  explicit StopWatch(DataFiles& files);
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;

 private:
  void Watch();

  DataFiles& files_;
  const tools::StopSignal signal_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

// Tells on standard error, once for all processes, why the run failed, and removes the data files.
//
// `comm` has all processes of the run, and is used for nothing else. Where all of them fail, as
// they do where a file cannot be made, the first one's reason is told and the function returns;
// where `ends_now`, or where others do not fail within a second, since they wait in MPI for this
// one, it ends all processes with MPI_Abort() and does not return.
void EndRun(MPI_Comm comm, const absl::Status& why, bool ends_now, DataFiles& files);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_FAILURE_H_
