// One way to move a dataset's bytes, by all processes of a group.
#ifndef H5MIRROR_H5PERF_BACKEND_H_
#define H5MIRROR_H5PERF_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "h5perf/group.h"
#include "h5perf/options.h"
#include "h5perf/pattern.h"

namespace h5mirror::pperf {

// Calls come in this order: Open, Prepare, for each dataset BeginDataset, transfers, EndDataset,
// and Close. All but transfers are collective, and so are transfers where the workload is.
//
// What is open stays so where a call fails, and also in the destructor: a close waits for the other
// processes, which may be elsewhere. Then the process is to end.
class Backend {
 public:
  virtual ~Backend() = default;
  // `creates`: an empty file, to write; else one to read.
  virtual absl::Status Open(const std::string& file, bool creates) = 0;
  // What all datasets of `pattern` use, which outlives the file.
  virtual absl::Status Prepare(const Pattern& pattern) = 0;
  virtual absl::Status BeginDataset(uint64_t number) = 0;
  // All of the buffer's pattern.transfer_bytes(), as transfer `number` of the dataset.
  virtual absl::Status Write(uint64_t number, const unsigned char* buffer) = 0;
  virtual absl::Status Read(uint64_t number, unsigned char* buffer) = 0;
  virtual absl::Status EndDataset() = 0;
  virtual absl::Status Close() = 0;
  // By the group's first process, when all have closed it.
  virtual void Remove(const std::string& file) = 0;
  virtual bool is_open() const = 0;
  // Why the file is not mirrored as it was asked to be, though all succeeded; mostly empty.
  virtual std::string Complaint(const std::string&) const { return ""; }
};

// `group` and `options` must outlive it.
std::unique_ptr<Backend> MakePosixBackend(const Group& group, const Options& options);
std::unique_ptr<Backend> MakeMpiioBackend(const Group& group, const Options& options);
std::unique_ptr<Backend> MakeHdf5Backend(const Group& group, const Options& options,
                                         const Driver& driver);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_BACKEND_H_
