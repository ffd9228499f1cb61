#include "swmr_agent/closer.h"

#include <pthread.h>

#include <utility>

namespace h5mirror::agent {

Closer::Closer()
    : thread_([this] {
        pthread_setname_np(pthread_self(), "h5m-closer");
        Run();
      }) {}

Closer::~Closer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Closer::Take(std::vector<FilePtr> files) {
  std::erase(files, nullptr);
  for (const FilePtr& file : files) file->Cancel();
  absl::MutexLock lock(&mutex_);
  for (FilePtr& file : files) files_.push_back(std::move(file));
}

void Closer::Run() {
  const auto has_work = [this]()
                            ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping_ || !files_.empty(); };
  for (;;) {
    std::vector<FilePtr> files;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      files.swap(files_);
      if (files.empty()) return;
    }
    files.clear();
  }
}

}  // namespace h5mirror::agent
