// Checks that a store has kept its promises, and can be used.
#ifndef H5MIRROR_TESTS_CRASH_CHECK_STORE_H_
#define H5MIRROR_TESTS_CRASH_CHECK_STORE_H_

#include "absl/status/status.h"
#include "base/testing/counted_env.h"
#include "onion_store/store.h"
#include "tests/crash/player.h"
#include "tests/crash/promises.h"

namespace h5mirror::store {

// For each file of `promises`: that every acked version and the newest acked cut are there, that
// all versions read as their golden bytes before and after the cuts are applied, and the head too;
// then that a new session writes and commits a version, with numbers that were never given, and
// that this changed nothing old. A removed file is brought back before. If versions were dropped,
// the prune is continued, and must leave nothing. Verify must find nothing. `choice` varies the
// check: whether the prune comes before the new version or after it, whether the prune gets its
// versions again or only continues, and whether to run a verify. Notes its own changes in
// `promises`. Not OK: the violation. `env` is the one that `store` is on.
absl::Status CheckStore(Store& store, CountedEnv& env, uint64_t choice, Promises* promises);

// As CheckStore(), but also opens the store on `env` and closes it again.
absl::Status CheckDisk(CountedEnv& env, const PlayOptions& options, uint64_t choice,
                       Promises* promises);

// Changes the disk: opens the store, and goes on with every file before anything is applied
// that was durable; then versions and head must be right.
absl::Status CheckGoingOn(CountedEnv& env, const PlayOptions& options, uint64_t choice,
                          Promises* promises);

// Opens every file and reads all that can be read: each byte must be golden, or an error must say
// why not. For disks that rot: no other promise is checked.
absl::Status CheckNoWrongBytes(CountedEnv& env, const PlayOptions& options,
                               const Promises& promises);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_CHECK_STORE_H_
