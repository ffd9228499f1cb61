#include "server/notify/event_queue.h"

#include <algorithm>

namespace h5mirror::server {

void EventQueue::Fold(Event& into, Event event) {
  into.repeated += 1 + event.repeated;
  into.last_time = event.last_time;
  into.text = std::move(event.text);
  into.numbers = std::move(event.numbers);
}

// An event that was tried may have arrived, so it no longer changes.
Event* EventQueue::FindFresh(const Key& key) {
  for (size_t i = is_taken_ ? 1 : 0; i < ready_.size(); ++i) {
    if (ready_[i].tries == 0 && KeyOf(ready_[i].event) == key) return &ready_[i].event;
  }
  const auto held = held_.find(key);
  return held == held_.end() ? nullptr : &held->second.event;
}

void EventQueue::Push(Event event, absl::Duration now) {
  ForgetWindows(now);
  // With too many, one more is not remembered: its next one comes at once.
  const Key key = KeyOf(event);
  if (windows_.size() < 4 * limits_.events_max) windows_[key] = now + limits_.window;
  ready_.push_back({.event = std::move(event)});
}

size_t EventQueue::Add(Event event, absl::Duration now) {
  ReleaseHeld(now);
  const Key key = KeyOf(event);
  if (Event* const same = FindFresh(key)) {
    Fold(*same, std::move(event));
    return 0;
  }
  const auto window = windows_.find(key);
  if (window != windows_.end() && now < window->second) {
    held_[key] = {std::move(event), window->second};
  } else {
    Push(std::move(event), now);
  }
  return size() > limits_.events_max ? DropOne() : 0;
}

bool EventQueue::DropOldestIf(bool (*may_go)(const Event& event)) {
  const auto entry = std::find_if(ready_.begin() + (is_taken_ ? 1 : 0), ready_.end(),
                                  [&](const Entry& each) { return may_go(each.event); });
  if (entry != ready_.end()) {
    ready_.erase(entry);
    return true;
  }
  auto oldest = held_.end();
  for (auto each = held_.begin(); each != held_.end(); ++each) {
    if (!may_go(each->second.event)) continue;
    if (oldest == held_.end() || each->second.due < oldest->second.due) oldest = each;
  }
  if (oldest == held_.end()) return false;
  held_.erase(oldest);
  return true;
}

size_t EventQueue::DropOne() {
  const bool dropped = DropOldestIf([](const Event& event) { return !event.file.empty(); }) ||
                       DropOldestIf([](const Event&) { return true; });
  return dropped ? 1 : 0;
}

void EventQueue::ReleaseHeld(absl::Duration now) {
  for (;;) {
    const auto first =
        std::min_element(held_.begin(), held_.end(),
                         [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
    if (first == held_.end() || now < first->second.due) return;
    Event event = std::move(first->second.event);
    held_.erase(first);
    Push(std::move(event), now);
  }
}

void EventQueue::ForgetWindows(absl::Duration now) {
  if (windows_.size() < 4 * limits_.events_max) return;
  std::erase_if(windows_, [now](const auto& window) { return window.second <= now; });
}

std::optional<Event> EventQueue::Take(absl::Duration now) {
  ReleaseHeld(now);
  if (ready_.empty() || now < ready_.front().next_try) return std::nullopt;
  Entry& entry = ready_.front();
  if (entry.tries++ == 0) entry.first_try = now;
  is_taken_ = true;
  return entry.event;
}

int EventQueue::Delivered() {
  is_taken_ = false;
  const int tries = ready_.front().tries;
  ready_.pop_front();
  return tries;
}

bool EventQueue::Failed(absl::Duration now, Retry retry) {
  is_taken_ = false;
  Entry& entry = ready_.front();
  if (retry == Retry::kCannotHelp || now - entry.first_try >= limits_.give_up) {
    ready_.pop_front();
    return false;
  }
  const int doublings = std::min(entry.tries - 1, 30);
  const absl::Duration pause = limits_.retry_min * (int64_t{1} << doublings);
  entry.next_try = now + std::min(pause, limits_.retry_max);
  return true;
}

}  // namespace h5mirror::server
