// gRPC after a fork. Its epoll set and the eventfd that wakes it outlive its shutdown (1.51).
// Parent and child would share one kernel object, and each would get the other's events, which are
// pointers. So the child gets its own set and eventfds, under the same descriptors. The watches of
// the set are read before the fork: after it the parent may change the shared set before the child
// looks.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"

namespace h5mirror::vfd {

// This process's epoll descriptors, in order.
std::vector<int> EpollDescriptors();

struct PollSet {
  struct Watch {
    int eventfd;
    uint32_t events;
    uint64_t data;
  };
  int epoll;
  std::vector<Watch> watched;
};

// The watches of `epoll`. Unset: `epoll` is no epoll set, or it watches descriptors other than
// eventfds. Those cannot be made anew.
std::optional<PollSet> ReadPollSet(int epoll);

// Replaces the epoll set and its eventfds by new ones, with the same descriptors and registrations.
// False: that failed, and `set.epoll` must not be used any more.
bool RenewPollSet(const PollSet& set);

// gRPC's polling in one process. Not thread-safe.
//
//   Begin() --> in use --Read(), before a fork--> Renew(), in the child
class ForkPolling {
 public:
  // Calls `start`, which may begin gRPC, and notes the epoll sets that it makes.
  void Begin(absl::FunctionRef<void()> start);
  // Reads the sets. `in_use`: gRPC is still running, so the child cannot use it.
  void Read(bool in_use);
  // In a child. False: the child must not use gRPC, which would hang.
  bool Renew() const;

 private:
  bool ReadSets();

  bool begun_ = false;  // ever, in this process
  // Where this module began gRPC.
  std::vector<int> epolls_;
  // The sets that the child renews. The flag says whether gRPC needs no others.
  std::vector<PollSet> sets_;
  bool is_whole_ = true;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_
