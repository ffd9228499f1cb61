// Callers that were found before, so that their tokens are not parsed and verified for each call.
#ifndef H5MIRROR_SERVER_DOOR_KNOWN_IDENTITIES_H_
#define H5MIRROR_SERVER_DOOR_KNOWN_IDENTITIES_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

// The identities that were found and are still in use. `Identity::*End` is the time at which calls
// of that identity end. Not thread-safe.
template <typename Identity, absl::Time Identity::*End>
class LivingIdentities {
 public:
  using Pointer = std::shared_ptr<const Identity>;

  void Add(const Pointer& identity) { living_.push_back(identity); }

  // The first end after `now`, or one less than 2 s before it. So a caller that asks once a second
  // does not miss an identity that was found and ended in between.
  absl::Time NextEnd(absl::Time now) {
    absl::Time next = absl::InfiniteFuture();
    const auto has_ended = [&](const std::weak_ptr<const Identity>& each) {
      const Pointer identity = each.lock();
      if (identity == nullptr || (*identity).*End <= now - kToldAfterEnd) return true;
      next = std::min(next, (*identity).*End);
      return false;
    };
    living_.erase(std::remove_if(living_.begin(), living_.end(), has_ended), living_.end());
    return next;
  }

  template <typename Look>
  void ForEach(const Look& look) const {
    for (const std::weak_ptr<const Identity>& each : living_) {
      if (const Pointer identity = each.lock(); identity != nullptr) look(*identity);
    }
  }

 private:
  static constexpr absl::Duration kToldAfterEnd = absl::Seconds(2);

  std::vector<std::weak_ptr<const Identity>> living_;
};

// By the digest of the token. `Identity::*End` is the time at which its running calls end.
// Thread-safe.
template <typename Identity, absl::Time Identity::*End>
class KnownIdentities {
 public:
  using Pointer = std::shared_ptr<const Identity>;

  // nullptr: not known.
  Pointer Find(const Sha256Digest& digest) const {
    absl::MutexLock lock(&mutex_);
    const auto found = known_.find(digest);
    return found == known_.end() ? nullptr : found->second;
  }

  void Remember(const Sha256Digest& digest, Pointer identity, absl::Time now) {
    absl::MutexLock lock(&mutex_);
    if (known_.size() >= kKnownMax) {
      absl::erase_if(known_, [&](const auto& each) { return now >= (*each.second).*End; });
    }
    if (known_.size() >= kKnownMax) known_.clear();
    living_.Add(identity);
    known_.insert_or_assign(digest, std::move(identity));
  }

  // Forgets all, so that each is verified again. Running calls keep their identities, and NextEnd()
  // keeps those ends.
  void Forget() {
    absl::MutexLock lock(&mutex_);
    known_.clear();
  }

  // As LivingIdentities::NextEnd().
  absl::Time NextEnd(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    return living_.NextEnd(now);
  }

 private:
  // The most identities remembered. With more, all are forgotten and verified again.
  static constexpr size_t kKnownMax = 4096;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Sha256Digest, Pointer> known_ ABSL_GUARDED_BY(mutex_);
  // Includes identities that were forgotten: a session keeps its own.
  LivingIdentities<Identity, End> living_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_KNOWN_IDENTITIES_H_
