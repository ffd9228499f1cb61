#include "swmr_agent/cut_opener.h"

#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "rpc/agent_open.h"
#include "spdlog/spdlog.h"
#include "swmr_agent/send_memory.h"

namespace h5mirror::agent {

CutOpener::~CutOpener() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void CutOpener::Take(std::shared_ptr<OpenReader> reader, uid_t user, rpc::CutMapQuestion question) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back({std::move(reader), user, std::move(question)});
  if (idle_ >= tasks_.size() || threads_.size() >= kThreadsMax) return;
  try {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "h5m-open");
      Run();
    });
  } catch (const std::system_error&) {  // No more threads: those that are there take it in turn.
    if (threads_.empty()) HangUpAll();
  }
}

void CutOpener::HangUpAll() {
  for (const Task& task : tasks_) shutdown(task.reader->fd.get(), SHUT_RDWR);
  tasks_.clear();
}

std::deque<CutOpener::Task>::iterator CutOpener::FindTask() {
  return std::find_if(tasks_.begin(), tasks_.end(), [this](const Task& task) {
    mutex_.AssertHeld();
    const auto busy = busy_.find(task.user);
    return busy == busy_.end() || busy->second < kOfUserMax;
  });
}

std::optional<CutOpener::Task> CutOpener::Next() {
  const auto has_work = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopping_ || FindTask() != tasks_.end();
  };
  absl::MutexLock lock(&mutex_);
  ++idle_;
  mutex_.Await(absl::Condition(&has_work));
  --idle_;
  if (stopping_) return std::nullopt;
  const auto found = FindTask();
  Task task = std::move(*found);
  tasks_.erase(found);
  ++busy_[task.user];
  return task;
}

void CutOpener::Run() {
  while (const std::optional<Task> task = Next()) {
    Answer(*task);
    absl::MutexLock lock(&mutex_);
    if (--busy_[task->user] == 0) busy_.erase(task->user);
  }
}

void CutOpener::Answer(const Task& task) {
  absl::StatusOr<OpenedCut> cut = open_(task.user, task.question);
  std::vector<int> descriptors;
  if (cut.ok() && cut->memory != nullptr) descriptors = cut->memory->descriptors();
  if (!cut.ok()) {
    spdlog::debug("{}: not opened for a map: {}", task.question.name,
                  ToStd(cut.status().message()));
  }
  const std::string answer =
      rpc::EncodeOpenAnswer(cut.ok() ? &cut->snapshot : nullptr, descriptors.size());
  // Before the reader has it, so that it counts from then on.
  if (cut.ok()) task.reader->memory = std::move(cut->memory);
  const int fd = task.reader->fd.get();
  if (!SendMemory(fd, answer, descriptors) || descriptors.empty()) shutdown(fd, SHUT_RDWR);
}

}  // namespace h5mirror::agent
