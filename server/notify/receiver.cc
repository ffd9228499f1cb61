#include "server/notify/receiver.h"

#include <pthread.h>

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// Slept while an event waits for its time, as a wait for a lock is until a time of day, which may
// be set back by hours.
constexpr absl::Duration kPause = absl::Milliseconds(50);

}  // namespace

Receiver::Receiver(NotifyRule rule, std::shared_ptr<const Deliverer> deliverer, Clock& clock,
                   NotifyCounter& counter, QueueLimits limits)
    : clock_(clock),
      counter_(counter),
      rule_(std::move(rule)),
      deliverer_(std::move(deliverer)),
      queue_(limits) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-notify");
    Run();
    has_stopped_ = true;
  });
}

Receiver::~Receiver() {
  BeginStop();
  Cancel();
  thread_.join();
}

void Receiver::Add(const Event& event) {
  const absl::Duration now = clock_.Monotonic();
  const absl::MutexLock lock(&mutex_);
  if (stopping_ || !rule_.Takes(event.kind, event.file)) return;
  const size_t dropped = queue_.Add(event, now);
  if (dropped == 0) return;
  counter_.Add(rule_.kind(), &NotifyCounts::Results::dropped, dropped);
  if (std::exchange(is_dropping_, true)) return;
  spdlog::warn("notify: {}: {} events wait, so old ones are dropped", rule_.Label(), queue_.size());
}

void Receiver::Change(NotifyRule rule, std::shared_ptr<const Deliverer> deliverer) {
  const absl::MutexLock lock(&mutex_);
  rule_ = std::move(rule);
  deliverer_ = std::move(deliverer);
}

bool Receiver::Is(const NotifyRule& rule) const {
  const absl::MutexLock lock(&mutex_);
  return rule_.HasReceiverOf(rule);
}

uint64_t Receiver::pending() const {
  const absl::MutexLock lock(&mutex_);
  return queue_.size();
}

void Receiver::BeginStop() {
  const absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

bool Receiver::stopping() const {
  const absl::MutexLock lock(&mutex_);
  return stopping_;
}

void Receiver::Run() {
  for (;;) {
    {
      const absl::MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || queue_.size() > 0;
      };
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_ && (!queue_.has_fresh() || cancel_)) break;
    }
    if (!DeliverOne()) absl::SleepFor(kPause);
  }
  const absl::MutexLock lock(&mutex_);
  if (queue_.size() == 0) return;
  spdlog::warn("notify: {}: {} events were not delivered", rule_.Label(), queue_.size());
}

bool Receiver::DeliverOne() {
  std::optional<Event> event;
  std::shared_ptr<const Deliverer> deliverer;
  {
    const absl::Duration now = clock_.Monotonic();
    const absl::MutexLock lock(&mutex_);
    event = queue_.Take(now);
    deliverer = deliverer_;
  }
  if (!event.has_value()) return false;
  NoteResult(*event, deliverer->Deliver(*event, cancel_));
  return true;
}

void Receiver::NoteResult(const Event& event, const absl::Status& status) {
  const absl::Duration now = clock_.Monotonic();
  const absl::MutexLock lock(&mutex_);
  const std::string what = StrCat(EventName(event.kind), event.file.empty() ? "" : " of ",
                                  event.file.empty() ? std::string() : Quoted(event.file));
  if (status.ok()) {
    const int tries = queue_.Delivered();
    counter_.Add(rule_.kind(), &NotifyCounts::Results::delivered);
    if (is_failing_)
      spdlog::info("notify: {}: told of {} after {} tries", rule_.Label(), what, tries);
    is_failing_ = is_dropping_ = false;
    return;
  }
  if (absl::IsCancelled(status)) {  // The end says what was not delivered.
    queue_.Failed(now, EventQueue::Retry::kMay);
    return;
  }
  const bool can_help = !absl::IsInvalidArgument(status);
  if (!queue_.Failed(now, can_help ? EventQueue::Retry::kMay : EventQueue::Retry::kCannotHelp)) {
    counter_.Add(rule_.kind(), &NotifyCounts::Results::failed);
    spdlog::error("notify: {}: could not be told of {}, given up: {}", rule_.Label(), what,
                  status.ToString());
    return;
  }
  counter_.Add(rule_.kind(), &NotifyCounts::Results::retried);
  // Once, not for each try.
  if (!std::exchange(is_failing_, true)) {
    spdlog::warn("notify: {}: cannot be told of {} now, tried again: {}", rule_.Label(), what,
                 status.ToString());
  }
}

}  // namespace h5mirror::server
