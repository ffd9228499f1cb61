// Random identities.
#ifndef H5MIRROR_BASE_RANDOM_H_
#define H5MIRROR_BASE_RANDOM_H_

#include "base/hex.h"

namespace h5mirror {

// 16 bytes of the kernel's generator; never the same twice. Thread-safe.
Bytes16 RandomBytes16();

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_RANDOM_H_
