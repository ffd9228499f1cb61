// Lets a forked child tell its parent that it wrote to an inherited file.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_CHILD_WRITES_H_
#define H5MIRROR_CLIENT_VFD_SESSION_CHILD_WRITES_H_

#include <atomic>
#include <cstdint>

#include "base/hex.h"

namespace h5mirror::vfd {

// A counter in memory that this process shares with children forked later. Two sessions may get
// the same one; the parent then sends more than it must.
std::atomic<uint32_t>* ChildWritesCounter(const Bytes16& session_id);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_CHILD_WRITES_H_
