// Fencing numbers for all files of a store. On disk: docs/reference/format.md, "Tokens".
#ifndef H5MIRROR_ONION_STORE_SHARED_TOKEN_SOURCE_H_
#define H5MIRROR_ONION_STORE_SHARED_TOKEN_SOURCE_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// Thread-safe. A grant costs a sync once in 1000 times.
class TokenSource {
 public:
  static constexpr char kFileName[] = ".h5mirror/tokens";

  // kInMemory: no holder of a token outlives the store, so tokens begin at 1 each time.
  enum class Keeping : uint8_t { kDurable, kInMemory };
  TokenSource(EnvTree& tree, Keeping keeping) : tree_(tree), keeping_(keeping) {}

  // kDataLoss: the mark is damaged.
  absl::Status Load();
  // Larger than every token before, also across crashes.
  absl::StatusOr<Token> Next();

 private:
  absl::Status Reserve(uint64_t mark) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EnvTree& tree_;
  const Keeping keeping_;
  absl::Mutex mutex_;
  Token next_ ABSL_GUARDED_BY(mutex_) = 1;
  Token mark_ ABSL_GUARDED_BY(mutex_) = 1;  // durable: tokens below may be given
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_TOKEN_SOURCE_H_
