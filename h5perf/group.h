// The processes that measure together.
#ifndef H5MIRROR_H5PERF_GROUP_H_
#define H5MIRROR_H5PERF_GROUP_H_

#include <mpi.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "h5perf/timers.h"

namespace h5mirror::pperf {

// `comm` and `info` are borrowed. Calls are collective.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  int processes = 1;
  int rank = 0;

  static Group Of(MPI_Comm comm, MPI_Info info);
  bool first() const { return rank == 0; }
  void Wait() const { MPI_Barrier(comm); }
  // The shortest and the longest of each time.
  Spread SpreadOf(const Times& mine) const;
  // The first process's words, in all of them.
  std::vector<std::string> Share(std::vector<std::string> words) const;
};

// MPI's text for a return code: "what: ...". OK if it is MPI_SUCCESS.
absl::Status CheckMpi(int code, const std::string& what);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_GROUP_H_
