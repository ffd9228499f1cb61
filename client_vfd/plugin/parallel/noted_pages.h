// The pages of a file that one rank has written since they were taken last.
//
// Whole pages of 4 KiB, since MPI-IO may write a little beside what it was given (data sieving). A
// note may cover more than was written, which only sends more: beyond kRunsMax runs the smallest
// gaps are closed.
//
// Not thread-safe. Add() costs O(log n) and the runs that it merges.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_NOTED_PAGES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_NOTED_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace h5mirror::vfd {

class NotedPages {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kRunsMax = 8192;

  // The bytes [offset, end), of whole pages.
  struct Run {
    uint64_t offset = 0;
    uint64_t end = 0;
    bool operator==(const Run&) const = default;
  };

  // `length` 0 adds nothing. A range that reaches beyond 2^63 is cut off there.
  void Add(uint64_t offset, uint64_t length);
  bool empty() const { return runs_.empty(); }
  // In order, disjoint; none is left.
  std::vector<Run> Take();

 private:
  void Coarsen();

  std::map<uint64_t, uint64_t> runs_;  // offset -> end
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_NOTED_PAGES_H_
