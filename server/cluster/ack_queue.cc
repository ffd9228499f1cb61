#include "server/cluster/ack_queue.h"

#include <pthread.h>

#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

// Between two reads of a registry that does not answer.
constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(50);

}  // namespace

absl::Status AskAgain(const absl::Status& guard) {
  if (guard.ok() || absl::IsUnavailable(guard)) return guard;
  return absl::UnavailableError(
      StrCat("this server does not serve the file any more: ", ToStd(guard.message())));
}

AckQueue::AckQueue(Ownership& ownership) : ownership_(ownership) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-acks");
    Run();
  });
}

AckQueue::~AckQueue() { Stop(); }

void AckQueue::Put(std::string cell, uint64_t epoch, Answer answer) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stops_) {
      waiting_.push_back({std::move(cell), epoch, std::move(answer)});
      return;
    }
  }
  answer(AskAgain(ownership_.BeforeAck(cell, epoch)));
}

void AckQueue::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

std::vector<AckQueue::Waiting> AckQueue::AnswerAll(std::vector<Waiting> batch, bool is_last) {
  std::vector<Waiting> later;
  if (batch.empty()) return later;
  // One read, begun after all of the batch were synced. It is of this server, whatever the cell.
  const std::string cell = batch.front().cell;
  const uint64_t epoch = batch.front().epoch;
  const absl::Status first = ownership_.BeforeAck(cell, epoch);
  // kFailedPrecondition is of that cell alone, after a read that succeeded.
  const bool is_read = first.ok() || absl::IsFailedPrecondition(first);
  for (Waiting& each : batch) {
    const bool is_first = each.cell == cell && each.epoch == epoch;
    const absl::Status status =
        is_first || !is_read ? first : ownership_.Check(each.cell, each.epoch);
    if (absl::IsUnavailable(status) && !is_last) {
      later.push_back(std::move(each));
    } else {
      each.answer(AskAgain(status));
    }
  }
  return later;
}

void AckQueue::Run() {
  for (bool stops = false; !stops;) {
    std::vector<Waiting> batch;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &AckQueue::HasWork));
      batch.swap(waiting_);
      stops = stops_;
    }
    std::vector<Waiting> later = AnswerAll(std::move(batch), stops);
    if (later.empty()) continue;
    absl::SleepFor(kAskAgainAfter);
    absl::MutexLock lock(&mutex_);
    waiting_.insert(waiting_.begin(), std::make_move_iterator(later.begin()),
                    std::make_move_iterator(later.end()));
  }
}

}  // namespace h5mirror::server
