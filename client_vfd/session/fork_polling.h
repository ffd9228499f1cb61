// gRPC after a fork. Its epoll set and the eventfd that wakes it outlive its shutdown (1.51):
// parent and child would share one kernel object, and each be handed the other's events, which are
// pointers. So the child gets its own of both, under the same descriptors. What the set watches is
// read before the fork: afterwards the parent may use the shared one again before the child looks.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_

#include <cstdint>
#include <optional>
#include <vector>

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

// What `epoll` watches. Nothing: it is no epoll set, or watches other things than eventfds, which
// could not be had anew.
std::optional<PollSet> ReadPollSet(int epoll);

// Gives the epoll set and its eventfds to this process as new ones, with the same registrations.
// False: it could not, and `set.epoll` must not be used any more.
bool RenewPollSet(const PollSet& set);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_
