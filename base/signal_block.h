// Signals kept away from threads that are made in a stranger's process.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace h5mirror {

// While it lives, the calling thread has all signals blocked, and so have, for good, the threads
// that it starts: a new thread inherits the mask. A program's handlers must never run on ours, nor
// a signal that is to wake one of its threads go to one of ours. Signals that come meanwhile are
// delivered afterwards.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace h5mirror
