// Blocks signals in the threads that we start in a program that is not ours.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace h5mirror {

// While this object lives, all signals are blocked in the calling thread. Threads that it starts
// meanwhile inherit the mask, and keep it for good. So the program's handlers never run on our
// threads, and no signal for a thread of the program goes to one of ours. Signals that arrive
// meanwhile are delivered afterwards.
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
