#include "client_vfd/plugin/metadata_buffer/held_fork.h"

#include <pthread.h>

#include <atomic>
#include <set>
#include <thread>

#include "client_vfd/plugin/metadata_buffer/held_file.h"

namespace h5mirror::vfd {
namespace {

std::set<HeldFile*>& Files() {
  static auto* files = new std::set<HeldFile*>;
  return *files;
}

// The handlers may be registered twice, and then run twice in one fork.
std::atomic<std::thread::id> forking_thread;
int depth = 0;  // of the handlers of the thread that forks

void Prepare() {
  if (forking_thread.load() != std::this_thread::get_id()) {
    HeldMutex().lock();
    forking_thread.store(std::this_thread::get_id());
    for (HeldFile* file : Files()) file->BeforeFork();
  }
  ++depth;
}

// In the parent and in the child, whose one thread is the one that forked.
void After() {
  if (--depth > 0) return;
  forking_thread.store(std::thread::id());
  HeldMutex().unlock();
}

}  // namespace

std::mutex& HeldMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

void AddHeldFile(HeldFile* file) {
  std::lock_guard lock(HeldMutex());
  Files().insert(file);
}

void RemoveHeldFile(HeldFile* file) {
  std::lock_guard lock(HeldMutex());
  Files().erase(file);
}

// Never unregistered: the library is linked with -z nodelete.
void RegisterHeldFork(SessionLoaded loaded) {
  if (loaded == SessionLoaded::kYes) {
    static const int registered = pthread_atfork(Prepare, After, After);
    static_cast<void>(registered);
  } else {
    static const int registered = pthread_atfork(Prepare, After, After);
    static_cast<void>(registered);
  }
}

}  // namespace h5mirror::vfd
