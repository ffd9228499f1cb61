// The threads of gRPC that run its timers. They use descriptors by themselves: a keepalive is
// written, a call's deadline cancels it, and a poller looks at the epoll set.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_GRPC_TIMERS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_GRPC_TIMERS_H_

namespace h5mirror::vfd {

// Ends these threads, for the life of the process; waits for timers that run just now. gRPC must
// have begun, and is of no more use. False: this gRPC does not offer it.
bool StopGrpcTimers();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_GRPC_TIMERS_H_
