// Checks that files can be rebuilt from the archive alone.
#ifndef H5MIRROR_TESTS_CRASH_CHECK_COPIES_H_
#define H5MIRROR_TESTS_CRASH_CHECK_COPIES_H_

#include "absl/status/status.h"
#include "base/testing/fault_env.h"
#include "tests/crash/player.h"
#include "tests/crash/promises.h"

namespace h5mirror::store {

// Rebuilds all files that the archive on the disk of `env` has copies of, on a disk of their own.
// kFailedPrecondition: a file cannot be rebuilt, a version of it has bytes that no cut had, or an
// acked copy is missing.
absl::Status CheckCopies(Env& env, const PlayOptions& options, const Promises& promises);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_CHECK_COPIES_H_
