#include "client_vfd/embedded/open_writers.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client_vfd/embedded/fork.h"

namespace h5mirror::vfd {
namespace {

// A fork waits at most this long for operations in progress.
constexpr absl::Duration kForkWait = absl::Seconds(2);

}  // namespace

void Listener::Tell(const char* event, H5mState state, const EmbeddedProgress& progress,
                    const std::string& detail) const {
  const H5mEvent told{
      event, state, progress.cut, progress.version, detail.c_str(), detail.empty() ? 0 : 1};
  if (notify != nullptr) notify(context, &told);
}

OpenWriters& OpenWriters::Get() {
  static auto* writers = new OpenWriters;
  return *writers;
}

absl::Status OpenWriters::CheckUsable() {
  if (usable_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process was forked while its parent wrote a file with server=embedded, and cannot use "
      "that itself; do it in a process of its own");
}

absl::StatusOr<OpenWriter*> OpenWriters::Add(EmbeddedWriterConfig config, const void* host,
                                             const Listener& listener) {
  H5M_RETURN_IF_ERROR(CheckUsable());
  absl::MutexLock lock(&mutex_);
  if (writers_.contains(config.path)) {
    return absl::UnavailableError(
        StrCat(config.path, " is open in this process already, through another HDF5 library"));
  }
  auto made = std::make_unique<OpenWriter>();
  made->path = config.path;
  made->host = host;
  made->listener = listener;
  auto writer = EmbeddedWriter::Open(std::move(config), [listener](const std::string& text) {
    listener.Tell("outside", H5M_STATE_UNCHANGED, {}, text);
  });
  H5M_RETURN_IF_ERROR(writer.status());
  made->writer = *std::move(writer);
  OpenWriter* const added = made.get();
  writers_.emplace(added->path, std::move(made));
  return added;
}

OpenWriter* OpenWriters::Share(const std::string& path, const void* host) {
  if (!usable_) return nullptr;
  absl::MutexLock lock(&mutex_);
  const auto at = writers_.find(path);
  if (at == writers_.end() || at->second->host != host || at->second->share_count == 0) {
    return nullptr;
  }
  ++at->second->share_count;
  return at->second.get();
}

bool OpenWriters::LastCloses(OpenWriter* writer, bool clean) {
  absl::MutexLock lock(&mutex_);
  writer->clean = writer->clean && clean;
  return --writer->share_count == 0;
}

void OpenWriters::Forget(OpenWriter* writer) {
  std::unique_ptr<OpenWriter> gone;
  absl::MutexLock lock(&mutex_);
  gone = std::move(writers_.extract(writer->path).mapped());
}

absl::StatusOr<std::shared_ptr<store::File>> OpenWriters::FileForReaders(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  const auto at = writers_.find(path);
  if (at == writers_.end() || at->second->share_count == 0) return std::shared_ptr<store::File>();
  return at->second->writer->FileForReaders();
}

void OpenWriters::PrepareFork() {
  const absl::Time deadline = absl::Now() + kForkWait;
  store::EmbeddedLease::PrepareFork();
  locked_ = LockBefore(mutex_, deadline);
  was_still_ = locked_;
  if (!locked_) return;  // Another thread is opening a file.
  for (auto& [path, open] : writers_) {
    const bool still = open->writer->PrepareFork(deadline);
    was_still_ = was_still_ && still;
  }
}

void OpenWriters::ParentAfterFork() {
  store::EmbeddedLease::ParentAfterFork();
  if (!locked_) return;
  for (auto& [path, open] : writers_) open->writer->ParentAfterFork();
  mutex_.Unlock();
}

void OpenWriters::ChildAfterFork() {
  CountFork();
  store::EmbeddedLease::ChildAfterFork();
  usable_ = usable_ && was_still_;
  if (!locked_) return;  // For ever: its thread is not in the child.
  // Never destroyed: their threads are not here, and their files are the parent's.
  static auto* const inherited = new std::vector<std::unique_ptr<OpenWriter>>;
  for (auto& [path, open] : writers_) {
    open->writer->LeaveToParent();
    inherited->push_back(std::move(open));
  }
  writers_.clear();
  mutex_.Unlock();
}

}  // namespace h5mirror::vfd
