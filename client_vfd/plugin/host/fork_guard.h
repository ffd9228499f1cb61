// Tells a forked child from the process that opened a file, without a system call per write.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_FORK_GUARD_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_FORK_GUARD_H_

namespace h5mirror::vfd {

// Larger by one in each forked child. Compare with the value at the open of a file.
unsigned ForkGeneration();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_FORK_GUARD_H_
