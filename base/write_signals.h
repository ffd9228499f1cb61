// Blocks the signals by which a write ends a program.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace h5mirror {

// While this object lives, SIGPIPE and SIGXFSZ are blocked in the calling thread. So its write to a
// pipe or socket without a reader, or beyond `ulimit -f`, fails and sends no signal. A signal that
// came meanwhile is discarded. For writes in a program that is not ours.
class WriteSignalBlock {
 public:
  WriteSignalBlock() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&ours_);
    sigemptyset(&fresh_);
    for (const int number : {SIGPIPE, SIGXFSZ}) {
      sigaddset(&ours_, number);
      if (sigismember(&pending, number) == 0) sigaddset(&fresh_, number);
    }
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~WriteSignalBlock() {
    const timespec at_once{};
    while (sigtimedwait(&fresh_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalBlock(const WriteSignalBlock&) = delete;
  WriteSignalBlock& operator=(const WriteSignalBlock&) = delete;

 private:
  sigset_t ours_;
  sigset_t fresh_;  // the signals of ours_ that were not pending before
  sigset_t before_;
};

}  // namespace h5mirror
