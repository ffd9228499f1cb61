// Whether a process may start more threads. Libraries that get none hang or abort the program:
// gRPC 1.51 counts a thread of its timers that never began, and waits for its end for ever.
#ifndef H5MIRROR_BASE_FREE_THREADS_H_
#define H5MIRROR_BASE_FREE_THREADS_H_

#include <cstddef>
#include <string>

namespace h5mirror {

// The threads that gRPC and the module around it may start at their beginning. gRPC 1.51 started 8
// on two cores, and starts one more for each core above that, up to 32. The rest is for later.
size_t ThreadsOfGrpc();

// Starts `count` threads with stacks of the default size, all at once, and ends them. False: a
// limit of the user (RLIMIT_NPROC), of the address space or of a cgroup (pids.max) leaves fewer.
// Takes less than 1 ms for 14 threads. Thread-safe; signals do not reach these threads.
bool CanStartThreads(size_t count);

// What a user is told where `count` threads are not left.
std::string TooFewThreads(size_t count);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_FREE_THREADS_H_
