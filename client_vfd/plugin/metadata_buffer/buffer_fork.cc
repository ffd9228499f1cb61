#include "client_vfd/plugin/metadata_buffer/buffer_fork.h"

#include <pthread.h>

#include <atomic>
#include <set>
#include <thread>

#include "client_vfd/plugin/metadata_buffer/buffered_file.h"

namespace h5mirror::vfd {
namespace {

std::set<BufferedFile*>& Files() {
  static auto* files = new std::set<BufferedFile*>;
  return *files;
}

// The handlers may be registered twice, and then run twice in one fork.
std::atomic<std::thread::id> forking_thread;
int depth = 0;  // of the handlers of the thread that forks

void Prepare() {
  if (forking_thread.load() != std::this_thread::get_id()) {
    BufferMutex().lock();
    forking_thread.store(std::this_thread::get_id());
    for (BufferedFile* file : Files()) file->BeforeFork();
  }
  ++depth;
}

// In the parent and in the child, whose one thread is the one that forked.
void After() {
  if (--depth > 0) return;
  forking_thread.store(std::thread::id());
  BufferMutex().unlock();
}

}  // namespace

std::mutex& BufferMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

void AddBufferedFile(BufferedFile* file) {
  std::lock_guard lock(BufferMutex());
  Files().insert(file);
}

void RemoveBufferedFile(BufferedFile* file) {
  std::lock_guard lock(BufferMutex());
  Files().erase(file);
}

// Never unregistered: the library is linked with -z nodelete.
void RegisterBufferFork(SessionLoaded loaded) {
  if (loaded == SessionLoaded::kYes) {
    static const int registered = pthread_atfork(Prepare, After, After);
    static_cast<void>(registered);
  } else {
    static const int registered = pthread_atfork(Prepare, After, After);
    static_cast<void>(registered);
  }
}

}  // namespace h5mirror::vfd
