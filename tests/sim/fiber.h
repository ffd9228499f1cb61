// A thread of a simulated program: it has a stack of its own, and runs only while its simulation
// lets it.
#ifndef H5MIRROR_TESTS_SIM_FIBER_H_
#define H5MIRROR_TESTS_SIM_FIBER_H_

#include <ucontext.h>

#include <functional>

namespace h5mirror::sim {

// Thrown in the wait of a fiber that must end.
struct Killed {};

// Not thread-safe. Must have ended before it is destroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;

  // Runs it until it yields or ends. The caller must hold no lock and handle no exception.
  void Resume();
  // Called within the fiber: returns to the caller of Resume().
  void Yield();
  // The fiber never began, and never will.
  void Forget() { ended_ = true; }
  bool ended() const { return ended_; }

 private:
  static void Enter(unsigned high, unsigned low);

  std::function<void()> body_;
  char* stack_;
  ucontext_t own_, caller_;
  bool ended_ = false;
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_FIBER_H_
