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
  const auto is_theirs = [user](const Task& task) { return task.user == user; };
  const auto waiting = std::count_if(tasks_.begin(), tasks_.end(), is_theirs);
  const bool needs_thread = idle_ <= tasks_.size() && threads_.size() < kThreadsMax;
  if (static_cast<size_t>(waiting) >= kWaitingMax || (needs_thread && !Start())) {
    shutdown(reader->fd.get(), SHUT_RDWR);
    return;
  }
  tasks_.push_back({std::move(reader), user, std::move(question)});
}

bool CutOpener::Start() {
  try {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "h5m-open");
      Run();
    });
  } catch (const std::system_error&) {  // As where TasksMax of the unit is reached.
    return !threads_.empty();
  }
  return true;
}

bool CutOpener::MayBegin(const Task& task) const {
  size_t of_user = 0;
  for (const auto& [busy, threads] : busy_) {
    if (busy.first == task.user) of_user += threads;
  }
  const auto at_server = busy_.find({task.user, task.question.target});
  return of_user < kOfUserMax && (at_server == busy_.end() || at_server->second < kAtServerMax);
}

std::deque<CutOpener::Task>::iterator CutOpener::FindTask() {
  return std::find_if(tasks_.begin(), tasks_.end(), [this](const Task& task) {
    mutex_.AssertHeld();
    return task.reader.use_count() == 1 || MayBegin(task);
  });
}

std::optional<CutOpener::Task> CutOpener::Next() {
  const auto has_work = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopping_ || FindTask() != tasks_.end();
  };
  absl::MutexLock lock(&mutex_);
  for (;;) {
    ++idle_;
    mutex_.Await(absl::Condition(&has_work));
    --idle_;
    if (stopping_) return std::nullopt;
    const auto found = FindTask();
    Task task = std::move(*found);
    tasks_.erase(found);
    if (task.reader.use_count() == 1) continue;
    ++busy_[{task.user, task.question.target}];
    return task;
  }
}

void CutOpener::Run() {
  while (const std::optional<Task> task = Next()) {
    Answer(*task);
    absl::MutexLock lock(&mutex_);
    const auto busy = busy_.find({task->user, task->question.target});
    if (--busy->second == 0) busy_.erase(busy);
  }
}

// Opening may start a thread, which can throw.
absl::StatusOr<OpenedCut> CutOpener::OpenCut(const Task& task) const {
  try {
    return open_(task.user, task.question);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(error.what());
  }
}

void CutOpener::Answer(const Task& task) {
  absl::StatusOr<OpenedCut> cut = OpenCut(task);
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
