// An Env for tests that counts the changes made through it.
#ifndef H5MIRROR_BASE_TESTING_COUNTED_ENV_H_
#define H5MIRROR_BASE_TESTING_COUNTED_ENV_H_

#include <cstddef>

#include "base/env.h"

namespace h5mirror {

// A test notes each promise of the store with the count of changes at that moment. Thread-safe.
class CountedEnv : public Env {
 public:
  // Changes made so far: writes, truncates, syncs, names.
  virtual size_t change_count() const = 0;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_COUNTED_ENV_H_
