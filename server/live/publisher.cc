#include "server/live/publisher.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace h5mirror::server {

Publisher::Publisher(const ServiceEnvironment& environment, absl::Duration tick)
    : environment_(environment), tick_(tick), thread_([this] {
        pthread_setname_np(pthread_self(), "h5m-publisher");
        Run();
      }) {}

Publisher::~Publisher() {
  Stop();
  thread_.join();
}

absl::StatusOr<std::unique_ptr<Publisher::Follower>> Publisher::Follow(const std::string& name) {
  H5M_ASSIGN_OR_RETURN(auto file, environment_.store.OpenFile(name));
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
  file->NoteChanges();
  PublicationPtr stale, old;  // destroyed without the lock
  {
    absl::MutexLock lock(&mutex_);
    Topic& topic = topics_[name];
    ++topic.follower_count;
    if (topic.file != file) {
      // The first follower, or the file was opened again since.
      topic.file.swap(file);
      stale = topic.publication;
      old = Replace(topic, nullptr);
      topic.file_id = info.file_id;
      topic.status = absl::OkStatus();
      topic.last_time = -absl::InfiniteDuration();
      topic.changed = has_news_ = true;
    }
  }
  if (old != nullptr) old->EndSharing();
  return std::make_unique<Follower>(*this, name);
}

void Publisher::Unfollow(const std::string& name) {
  Topic dropped;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = topics_.find(name);
  if (--found->second.follower_count > 0) return;
  dropped = std::move(found->second);
  topics_.erase(found);
}

absl::StatusOr<Publisher::PublicationPtr> Publisher::Newest(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the server is stopping");
  const Topic& topic = topics_.find(name)->second;
  H5M_RETURN_IF_ERROR(topic.status);
  return topic.publication;
}

uint64_t Publisher::Wait(const std::string& name, const PublicationPtr& known, Waiter waiter) {
  uint64_t id;
  {
    absl::MutexLock lock(&mutex_);
    id = ++last_id_;
    Topic& topic = topics_.find(name)->second;
    if (!stopping_ && topic.status.ok() && topic.publication == known) {
      topic.waiting.emplace(id, std::exchange(waiter, nullptr));
    }
  }
  if (waiter != nullptr) waiter();
  return id;
}

bool Publisher::Cancel(const std::string& name, uint64_t id) {
  Waiter cancelled;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto topic = topics_.find(name);
  if (topic == topics_.end()) return false;
  const auto found = topic->second.waiting.find(id);
  if (found == topic->second.waiting.end()) return false;
  cancelled = std::move(found->second);
  topic->second.waiting.erase(found);
  return true;
}

bool Publisher::IsAtRest(const std::string& name, const PublicationPtr& known) {
  // First: what the writer's last cut was is asked after it has gone.
  if (environment_.leases.HolderOf(name).has_value()) return false;
  std::shared_ptr<store::File> file;
  {
    absl::MutexLock lock(&mutex_);
    const auto topic = topics_.find(name);
    if (topic == topics_.end() || topic->second.publication != known) return false;
    file = topic->second.file;
  }
  return file->NewestCut() == (known == nullptr ? 0 : known->cut());
}

void Publisher::OnChange(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = topics_.find(name);
  if (found == topics_.end()) return;
  found->second.changed = has_news_ = true;
}

void Publisher::OnChangeBelow(std::string_view prefix) {
  absl::MutexLock lock(&mutex_);
  for (auto at = topics_.lower_bound(prefix); at != topics_.end(); ++at) {
    if (!at->first.starts_with(prefix)) return;
    at->second.changed = has_news_ = true;
  }
}

void Publisher::Stop() {
  std::vector<Waiter> waiting;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (auto& [name, topic] : topics_) {
      for (auto& [id, waiter] : topic.waiting) waiting.push_back(std::move(waiter));
      topic.waiting.clear();
    }
  }
  for (const Waiter& waiter : waiting) waiter();
}

Publisher::Count Publisher::count() {
  absl::MutexLock lock(&mutex_);
  Count count;
  count.files = topics_.size();
  for (const auto& [name, topic] : topics_) count.followers += topic.follower_count;
  return count;
}

absl::Duration Publisher::NextDue() const {
  absl::Duration due = absl::InfiniteDuration();
  for (const auto& [name, topic] : topics_) {
    if (topic.changed) due = std::min(due, topic.last_time + tick_);
  }
  return due;
}

void Publisher::Run() {
  for (;;) {
    std::vector<std::string> due;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Duration wait = NextDue() - environment_.clock.Monotonic();
      if (wait > absl::ZeroDuration()) {
        has_news_ = false;
        environment_.clock.Await(mutex_, absl::Condition(this, &Publisher::HasNews), wait);
      }
      if (stopping_) return;
      const absl::Duration now = environment_.clock.Monotonic();
      for (auto& [name, topic] : topics_) {
        if (!topic.changed || topic.last_time + tick_ > now) continue;
        topic.changed = false;
        topic.last_time = now;
        due.push_back(name);
      }
    }
    for (const std::string& name : due) Publish(name);
  }
}

absl::StatusOr<Publisher::PublicationPtr> Publisher::Take(const std::string& name,
                                                          const std::shared_ptr<store::File>& file,
                                                          store::FileId file_id,
                                                          const PublicationPtr& before) {
  auto snapshot = file->PinNewestCut();
  if (absl::IsNotFound(snapshot.status())) return PublicationPtr();
  H5M_RETURN_IF_ERROR(snapshot.status());
  const bool is_same = before != nullptr && before->cut() == (*snapshot)->info().cut &&
                       !before->snapshot()->expired();
  if (is_same) return before;
  return std::make_shared<Publication>(file, *std::move(snapshot), file_id,
                                       environment_.clock.Now(),
                                       environment_.leases.HolderOf(name).has_value());
}

void Publisher::Publish(const std::string& name) {
  std::shared_ptr<store::File> file;
  store::FileId file_id;
  PublicationPtr before;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = topics_.find(name);
    if (found == topics_.end()) return;
    file = found->second.file;
    file_id = found->second.file_id;
    before = found->second.publication;
  }
  absl::StatusOr<PublicationPtr> taken = Take(name, file, file_id, before);
  PublicationPtr old;
  std::map<uint64_t, Waiter> waiting;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = topics_.find(name);
    // Nobody follows it any more, or the file was opened again: then that one is due.
    if (found == topics_.end() || found->second.file != file) return;
    Topic& topic = found->second;
    topic.status = taken.status();
    if (taken.ok()) old = Replace(topic, *std::move(taken));
    waiting.swap(topic.waiting);
  }
  for (const auto& [id, waiter] : waiting) waiter();
  if (old != nullptr) old->EndSharing();
}

Publisher::PublicationPtr Publisher::Replace(Topic& topic, PublicationPtr next) {
  if (topic.publication == next) return nullptr;
  PublicationPtr old = topic.before.lock();
  topic.before = topic.publication;
  topic.publication = std::move(next);
  return old;
}

}  // namespace h5mirror::server
