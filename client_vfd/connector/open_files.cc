#include "client_vfd/connector/open_files.h"

#include <algorithm>

namespace h5mirror::vol {

OpenFiles::OpenFile* OpenFiles::FindLocked(void* file) {
  for (OpenFile& each : files_) {
    if (each.file == file) return &each;
  }
  return nullptr;
}

OpenFiles::OpenFile& OpenFiles::AddLocked(void* file) {
  if (OpenFile* found = FindLocked(file)) return *found;
  files_.push_back({.file = file});
  return files_.back();
}

void OpenFiles::UpdateLocked() {
  int ticking = 0;
  int64_t due = TickClock::kNever;
  for (const OpenFile& each : files_) {
    ticking += each.ticks ? 1 : 0;
    due = std::min(due, each.clock.due());
  }
  ticking_.store(ticking, std::memory_order_relaxed);
  due_.store(due, std::memory_order_relaxed);
}

void OpenFiles::AddTicking(void* file, int64_t tick_ns) {
  std::lock_guard lock(mutex_);
  OpenFile& added = AddLocked(file);
  added.ticks = true;
  added.clock = TickClock(tick_ns);
  UpdateLocked();
}

void OpenFiles::CopyTicks(void* from, void* file) {
  int64_t tick_ns = 0;
  {
    std::lock_guard lock(mutex_);
    const OpenFile* found = FindLocked(from);
    if (found == nullptr || !found->ticks) return;
    tick_ns = found->clock.tick_ns();
  }
  AddTicking(file, tick_ns);
}

void OpenFiles::SetProgramList(void* file, hid_t fapl) {
  std::lock_guard lock(mutex_);
  AddLocked(file).program_fapl = fapl;
}

hid_t OpenFiles::ProgramList(void* file) {
  std::lock_guard lock(mutex_);
  const OpenFile* found = FindLocked(file);
  return found == nullptr ? H5I_INVALID_HID : found->program_fapl;
}

hid_t OpenFiles::Remove(void* file) {
  std::lock_guard lock(mutex_);
  const OpenFile* found = FindLocked(file);
  if (found == nullptr) return H5I_INVALID_HID;
  const hid_t fapl = found->program_fapl;
  files_.erase(files_.begin() + (found - files_.data()));
  UpdateLocked();
  return fapl;
}

void OpenFiles::OnChange(void* file, int64_t now) {
  std::lock_guard lock(mutex_);
  OpenFile* const found = FindLocked(file);
  if (found == nullptr) return;
  found->clock.OnChange(now);
  if (found->clock.due() < due_.load(std::memory_order_relaxed)) {
    due_.store(found->clock.due(), std::memory_order_relaxed);
  }
}

// A flush may call back, so it runs without the lock; a file can be closed meanwhile only by the
// thread that is in the flush.
void OpenFiles::FlushDue(const std::function<int64_t()>& clock,
                         const std::function<bool(void*)>& flush) {
  std::vector<void*> due;
  {
    std::lock_guard lock(mutex_);
    const int64_t now = clock();
    for (const OpenFile& each : files_) {
      if (each.clock.IsDue(now)) due.push_back(each.file);
    }
  }
  for (void* const file : due) {
    const int64_t began = clock();
    const bool is_flushed = flush(file);
    const int64_t ended = clock();
    std::lock_guard lock(mutex_);
    OpenFile* const found = FindLocked(file);
    if (found == nullptr) continue;
    if (is_flushed) {
      found->clock.OnFlushed(began, ended);
    } else {
      found->clock.OnFailed();
    }
  }
  std::lock_guard lock(mutex_);
  UpdateLocked();
}

}  // namespace h5mirror::vol
