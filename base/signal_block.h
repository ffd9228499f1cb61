// Blocks signals in the threads that we start in a program that is not ours.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace h5mirror {

// While it lives, all signals are blocked in the calling thread. Threads that it starts meanwhile
// inherit the mask, and have them blocked for good. So the program's handlers never run on our
// threads, and no signal that is to wake one of its threads goes to ours. Signals that come
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
