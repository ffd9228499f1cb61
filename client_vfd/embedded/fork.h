// What the embedded module must know of forks.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_FORK_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_FORK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::vfd {

// How often this process, with those that it was forked from, became another one. What was opened
// at another number is the parent's.
unsigned ForksSeen();
// In a forked child.
void CountFork();

// Locks `mutex` as soon as that can be had; false at `deadline`.
bool LockBefore(absl::Mutex& mutex, absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_FORK_H_
