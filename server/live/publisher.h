// Publishes the newest cut of each file to its followers, at most once in a tick.
#ifndef H5MIRROR_SERVER_LIVE_PUBLISHER_H_
#define H5MIRROR_SERVER_LIVE_PUBLISHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/calls/call.h"
#include "server/live/publication.h"

namespace h5mirror::server {

// A file is published as long as it has a follower. Thread-safe; calls the store with no lock held.
// Has one thread, which sleeps while no cut is made.
class Publisher {
 public:
  using PublicationPtr = std::shared_ptr<Publication>;
  // Called once, with no lock held, by the publisher's thread or by Stop(). It must not wait.
  using Waiter = std::function<void()>;

  Publisher(const ServiceEnvironment& environment, absl::Duration tick);
  ~Publisher();
  Publisher(const Publisher&) = delete;

  // While it lives, its file is open and published. A file may have any number. kNotFound: no such
  // file.
  class Follower {
   public:
    Follower(Publisher& publisher, std::string name)
        : publisher_(publisher), name_(std::move(name)) {}
    ~Follower() { publisher_.Unfollow(name_); }
    Follower(const Follower&) = delete;

   private:
    Publisher& publisher_;
    const std::string name_;
  };
  absl::StatusOr<std::unique_ptr<Follower>> Follow(const std::string& name);

  // The newest publication of a file that is followed; null: it has no cut yet.
  // Errors: kUnavailable  the file was moved or removed, or has failed; or the server is stopping.
  absl::StatusOr<PublicationPtr> Newest(const std::string& name);
  // Calls `waiter` as soon as there is another publication than `known` (null: none), the writer
  // has ended, or Newest() fails. Returns an id for Cancel().
  uint64_t Wait(const std::string& name, const PublicationPtr& known, Waiter waiter);
  // True: the waiter will not be called.
  bool Cancel(const std::string& name, uint64_t id);
  // True: the file has no writer, and `known` is its newest cut.
  bool IsAtRest(const std::string& name, const PublicationPtr& known);

  // `name` has a new cut, or its writer has ended. Costs one look-up if it has no follower.
  void OnChange(std::string_view name);
  // OnChange() for all files whose names begin with `prefix`.
  void OnChangeBelow(std::string_view prefix);
  // Calls all waiters; Newest() fails from then on.
  void Stop();

  // The numbers of followed files and of followers.
  struct Count {
    size_t files = 0;
    size_t followers = 0;
  };
  Count count();

 private:
  struct Topic {
    std::shared_ptr<store::File> file;
    store::FileId file_id{};
    int follower_count = 0;
    bool changed = false;  // since the publication, or writers came or went
    absl::Duration last_time = -absl::InfiniteDuration();  // of the publication
    PublicationPtr publication;                            // null: no cut yet
    std::weak_ptr<Publication> before;  // the former one, while followers still get it
    absl::Status status;                // not OK: why there are no more
    std::map<uint64_t, Waiter> waiting;
  };
  using Topics = std::map<std::string, Topic, std::less<>>;

  void Unfollow(const std::string& name);
  // Returns the former publication. The caller calls its EndSharing() without the lock.
  static PublicationPtr Replace(Topic& topic, PublicationPtr next);
  void Run();
  // When the next file is due, by `clock_.Monotonic()`; InfiniteDuration: none is.
  absl::Duration NextDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return has_news_ || stopping_; }
  // Takes the newest cut of `name`, and calls the waiters.
  void Publish(const std::string& name);
  absl::StatusOr<PublicationPtr> Take(const std::string& name,
                                      const std::shared_ptr<store::File>& file,
                                      store::FileId file_id, const PublicationPtr& before);

  const ServiceEnvironment environment_;
  const absl::Duration tick_;
  absl::Mutex mutex_;
  Topics topics_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_PUBLISHER_H_
