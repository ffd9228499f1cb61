// Forks, for the embedded module.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_FORK_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_FORK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::vfd {

// The number of forks from the first process down to this one. An object that was made at another
// number is the parent's.
unsigned ForksSeen();
// To be called in a forked child.
void CountFork();

// Waits for `mutex` and locks it. False: `deadline` has come first.
bool LockBefore(absl::Mutex& mutex, absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_FORK_H_
