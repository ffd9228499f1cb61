// Opens files below a directory that others can write, and follows no symbolic link.
#ifndef H5MIRROR_BASE_OPEN_BENEATH_H_
#define H5MIRROR_BASE_OPEN_BENEATH_H_

#include <cstdint>
#include <string>

#include "base/owned_fd.h"

namespace h5mirror {

// Opens `path`, relative and '/' separated, below the open directory `root`, with open(2)'s `flags`
// (O_CLOEXEC is added) and `mode_bits` under the process's umask. Refuses a symbolic link in any
// part of `path`, and a path that leads out of `root`: openat2(2) with RESOLVE_BENEATH and
// RESOLVE_NO_SYMLINKS. On failure the result is not open, and errno tells why: ELOOP or EXDEV for
// such a path; ENOSYS if a filter of the process forbids openat2 (systemd's RestrictSUIDSGID=
// does); or open's. Never returns descriptor 0, 1 or 2: in a program that has closed these, printed
// text would land in the file.
OwnedFd OpenBeneath(int root, const std::string& path, int flags, uint32_t mode_bits);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_OPEN_BENEATH_H_
