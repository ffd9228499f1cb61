#include "swmr_agent/block_filler.h"

#include <pthread.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

namespace h5mirror::agent {
namespace {

constexpr int kThreads = 16;
// Of one reader. It waits for one question. To ask ahead more often than that brings nothing.
constexpr int kAheadMax = 4;
constexpr int kWaitingMax = kAheadMax + 2;

// So often in a row a reader is found alone before it is told so: others that began with it have
// come by then.
constexpr int kAloneFrom = 8;

bool IsAnswered(const rpc::SharedWant& want) {
  return want.kind == rpc::SharedWant::kWait || want.kind == rpc::SharedWant::kWaitOrAlone;
}

// Each look tells that memory is lacking, if it is: windows without a reader end one by one.
bool IsAlone(BlockReader& reader, const rpc::SharedWant& want) {
  if (want.kind != rpc::SharedWant::kWaitOrAlone || !reader.view.is_version) return false;
  if (reader.view.image->IsAlone(reader.view.window)) return ++reader.looks > kAloneFrom;
  reader.looks = 0;
  return false;
}

uint32_t ResultOf(const absl::Status& status) {
  if (status.ok()) return rpc::SharedFilled::kFilled;
  // With a right that was taken away comes no other block, and none with a cut that is not here.
  const bool is_for_good = absl::IsPermissionDenied(status) || absl::IsNotFound(status);
  return is_for_good ? rpc::SharedFilled::kNever : rpc::SharedFilled::kNotNow;
}

uint32_t Fill(BlockReader& reader, const rpc::SharedWant& want) {
  const absl::Status status = reader.view.check();
  if (!status.ok()) return ResultOf(status);
  if (IsAlone(reader, want)) return rpc::SharedFilled::kAlone;
  return ResultOf(reader.view.image->Share(reader.view.window, want.first, want.count));
}

void Answer(const BlockReader& reader, uint32_t result) {
  const rpc::SharedFilled filled{result};
  // If it does not come through, the reader goes on in another way.
  static_cast<void>(send(reader.fd.get(), &filled, sizeof(filled), MSG_NOSIGNAL | MSG_DONTWAIT));
}

bool MakesSense(const rpc::SharedWant& want) {
  return want.count <= rpc::kSharedWantMax &&
         (IsAnswered(want) || want.kind == rpc::SharedWant::kAhead);
}

}  // namespace

BlockFiller::BlockFiller() {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "h5m-fill");
      Run();
    });
  }
}

BlockFiller::~BlockFiller() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

bool BlockFiller::Take(const std::shared_ptr<BlockReader>& reader, std::string* asked) {
  rpc::SharedWant want;
  for (; asked->size() >= sizeof(want); asked->erase(0, sizeof(want))) {
    std::memcpy(&want, asked->data(), sizeof(want));
    if (!MakesSense(want) || reader->waiting >= kWaitingMax) return false;
    if (want.kind == rpc::SharedWant::kAhead && reader->waiting >= kAheadMax) continue;
    ++reader->waiting;
    absl::MutexLock lock(&mutex_);
    // Readers that wait come before those that will.
    if (IsAnswered(want)) {
      tasks_.push_front({reader, want});
    } else {
      tasks_.push_back({reader, want});
    }
  }
  return true;
}

std::optional<BlockFiller::Task> BlockFiller::Next() {
  const auto has_work = [this]()
                            ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping_ || !tasks_.empty(); };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&has_work));
  if (stopping_) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void BlockFiller::Run() {
  while (const std::optional<Task> task = Next()) {
    const uint32_t result = Fill(*task->reader, task->want);
    if (IsAnswered(task->want)) Answer(*task->reader, result);
    --task->reader->waiting;
    if (IsAnswered(task->want) && result == rpc::SharedFilled::kFilled) GetMore(*task);
  }
}

bool BlockFiller::is_stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

// Threads must be left for readers that wait.
void BlockFiller::GetMore(const Task& task) {
  if (++getting_more_ <= kThreads / 2) {
    const SharedView& view = task.reader->view;
    const auto goes_on = [&] {
      const bool is_read = task.reader.use_count() > 1;  // Its connection is still served.
      return is_read && !is_stopping() && view.check().ok();
    };
    view.image->ShareMore(view.window, task.want.first + task.want.count, goes_on);
  }
  --getting_more_;
}

}  // namespace h5mirror::agent
