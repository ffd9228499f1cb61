// The server's memory of sessions, as long as it runs:
//
// - the sessions that began a new generation. A client that resumes one of which no cut survived
//   must begin it again, and not go on from the old head.
// - the newest stream of each session, so that a late duplicate is recognized.
// - the sessions that other streams may join, as long as they are there.
#ifndef H5MIRROR_SERVER_MIRROR_SESSION_MEMORY_H_
#define H5MIRROR_SERVER_MIRROR_SESSION_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/strings.h"
#include "onion_store/types.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

class Session;

// A session is known by its caller, its file and its id: a reader of a file sees the id of its
// writer, so an id alone proves nothing. Rights to the file are checked before.
//
// Thread-safe. Of the first two it holds the newest `kept_max` sessions, at least one.
class SessionMemory {
 public:
  // A digest, so that long names cost no more.
  using Key = std::array<uint8_t, 16>;
  static Key KeyOf(std::string_view caller, std::string_view file,
                   const store::SessionId& session_id) {
    const std::string_view id(reinterpret_cast<const char*>(session_id.data()), session_id.size());
    const Sha256Digest digest =
        Sha256(StrCat(id, caller.size(), ":", caller, file.size(), ":", file));
    Key key;
    std::copy_n(digest.begin(), key.size(), key.begin());
    return key;
  }

  explicit SessionMemory(size_t kept_max = 65536)
      : began_new_(kept_max), newest_stream_(kept_max) {}

  void RememberNew(const Key& key) {
    absl::MutexLock lock(&mutex_);
    began_new_[key] = true;
  }

  bool BeganNew(const Key& key) const {
    absl::MutexLock lock(&mutex_);
    return began_new_.Has(key);
  }

  // False: the session has had a stream with this number or a larger one.
  bool IsNextStream(const Key& key, uint64_t stream) {
    absl::MutexLock lock(&mutex_);
    uint64_t& newest = newest_stream_[key];
    if (stream <= newest) return false;
    newest = stream;
    return true;
  }

  // The last stream added for a session counts.
  void AddOpen(const Key& key, std::weak_ptr<Session> session) {
    absl::MutexLock lock(&mutex_);
    open_[key] = std::move(session);
  }
  std::shared_ptr<Session> FindOpen(const Key& key) const {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(key);
    return found == open_.end() ? nullptr : found->second.lock();
  }
  // Forgets it, unless a later stream has taken its place.
  void RemoveOpen(const Key& key, const std::weak_ptr<Session>& session) {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(key);
    if (found == open_.end() || found->second.owner_before(session) ||
        session.owner_before(found->second)) {
      return;
    }
    open_.erase(found);
  }

 private:
  // Forgets the oldest.
  template <typename Value>
  class Newest {
   public:
    explicit Newest(size_t kept_max) : kept_max_(kept_max) {}

    Value& operator[](const Key& key) {
      const auto [found, is_new] = values_.try_emplace(key);
      if (is_new) order_.push_back(key);
      if (order_.size() > kept_max_) {
        values_.erase(order_.front());
        order_.pop_front();
      }
      return found->second;
    }
    bool Has(const Key& key) const { return values_.count(key) != 0; }

   private:
    const size_t kept_max_;
    std::map<Key, Value> values_;
    std::deque<Key> order_;
  };

  mutable absl::Mutex mutex_;
  Newest<bool> began_new_ ABSL_GUARDED_BY(mutex_);
  Newest<uint64_t> newest_stream_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::weak_ptr<Session>> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_SESSION_MEMORY_H_
