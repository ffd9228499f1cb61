#include "cluster/ack_guard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {

AckGuard::AckGuard(Clock& clock, absl::Duration valid_for, Ask ask)
    : clock_(clock), valid_for_(valid_for), ask_(std::move(ask)) {}

absl::Status AckGuard::CheckTime() const {
  if (!closed_.ok()) return closed_;
  const absl::Duration now = clock_.Monotonic();
  if (now < valid_until_) return absl::OkStatus();
  if (valid_until_ == -absl::InfiniteDuration()) {
    return absl::UnavailableError("this server has not joined its cluster yet");
  }
  return absl::UnavailableError(StrCat("this server has not reached its cluster's registry for ",
                                       HumanDuration(now - valid_until_ + valid_for_),
                                       ", and answers when it has"));
}

absl::Status AckGuard::Check(std::string_view cell, uint64_t epoch) const {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(CheckTime());
  const auto found = epochs_.find(cell);
  if (found != epochs_.end() && found->second == epoch) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("the cell \"", cell, "\" is not this server's at epoch ", epoch));
}

absl::Status AckGuard::AskAnew() {
  std::optional<uint64_t> wanted;
  for (;;) {
    uint64_t number = 0;
    {
      absl::MutexLock lock(&mutex_);
      // The read in flight may have looked before the caller's sync.
      if (!wanted.has_value()) wanted = begun_ + 1;
      const auto may_go_on = [this, wanted] {
        mutex_.AssertReaderHeld();
        return ended_ >= *wanted || !is_asking_;
      };
      clock_.Await(mutex_, absl::Condition(&may_go_on), absl::InfiniteDuration());
      if (ended_ >= *wanted) return answer_;
      is_asking_ = true;
      number = ++begun_;
    }
    // It began after this call. Another read may end before this thread gets the lock again, so
    // `answer_` may be a later one by then.
    absl::Status answer = ask_();
    absl::MutexLock lock(&mutex_);
    answer_ = answer;
    ended_ = number;
    is_asking_ = false;
    return answer;
  }
}

absl::Status AckGuard::BeforeAck(std::string_view cell, uint64_t epoch) {
  H5M_RETURN_IF_ERROR(AskAnew());
  return Check(cell, epoch);
}

void AckGuard::Renew(absl::Duration sent_at) {
  absl::MutexLock lock(&mutex_);
  valid_until_ = std::max(valid_until_, sent_at + valid_for_);
}

void AckGuard::Close(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (closed_.ok()) closed_ = absl::InternalError(why.message());
}

void AckGuard::Add(const std::string& cell, uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  epochs_[cell] = epoch;
}

void AckGuard::Drop(const std::string& cell) {
  absl::MutexLock lock(&mutex_);
  epochs_.erase(cell);
}

bool AckGuard::is_open() const {
  absl::MutexLock lock(&mutex_);
  return CheckTime().ok();
}

absl::Duration AckGuard::BeatAge() const {
  absl::MutexLock lock(&mutex_);
  return clock_.Monotonic() - (valid_until_ - valid_for_);
}

}  // namespace h5mirror::cluster
