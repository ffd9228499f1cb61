// gRPC after a fork. Its epoll set and the eventfd that wakes it outlive its shutdown (1.51):
// parent and child would share one kernel object, and each be handed the other's events, which are
// pointers. So the child gets its own of both, under the same descriptors.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_

#include <vector>

namespace h5mirror::vfd {

// This process's epoll descriptors, in order.
std::vector<int> EpollDescriptors();

// Gives `epoll`, which watches nothing but eventfds, a new epoll set and new eventfds with the same
// registrations. False: it could not, and `epoll` must not be used any more.
bool RenewEpoll(int epoll);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_FORK_POLLING_H_
