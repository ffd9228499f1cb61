#include "client_vfd/connector/open_files.h"

#include <algorithm>
#include <utility>

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

void OpenFiles::AddTicking(void* file, int64_t tick_ns, const Mirrored& mirrored) {
  std::lock_guard lock(mutex_);
  OpenFile& added = AddLocked(file);
  added.ticks = true;
  added.clock = TickClock(tick_ns);
  added.mirrored = mirrored;
  UpdateLocked();
}

void OpenFiles::CopyTicks(void* from, void* file) {
  OpenFile known;
  {
    std::lock_guard lock(mutex_);
    const OpenFile* found = FindLocked(from);
    if (found == nullptr || !found->ticks) return;
    known = *found;
  }
  AddTicking(file, known.clock.tick_ns(), known.mirrored);
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

void OpenFiles::OnProgramFlush(void* file) {
  std::lock_guard lock(mutex_);
  OpenFile* const found = FindLocked(file);
  if (found == nullptr) return;
  found->clock.OnProgramFlush();
  UpdateLocked();
}

// A flush may call back, so it runs without the lock; a file can be closed meanwhile only by the
// thread that is in the flush.
void OpenFiles::FlushDue(const std::function<int64_t()>& clock,
                         const std::function<Flushed(void*, const Mirrored&)>& flush) {
  std::vector<std::pair<void*, Mirrored>> due;
  {
    std::lock_guard lock(mutex_);
    const int64_t now = clock();
    for (const OpenFile& each : files_) {
      if (each.clock.IsDue(now)) due.emplace_back(each.file, each.mirrored);
    }
  }
  for (const auto& [file, mirrored] : due) {
    const int64_t began = clock();
    const Flushed how = flush(file, mirrored);
    const int64_t ended = clock();
    std::lock_guard lock(mutex_);
    if (OpenFile* const found = FindLocked(file)) Note(how, began, ended, &found->clock);
  }
  std::lock_guard lock(mutex_);
  UpdateLocked();
}

void OpenFiles::Note(Flushed how, int64_t began, int64_t ended, TickClock* clock) {
  switch (how) {
    case Flushed::kYes:
      return clock->OnFlushed(began, ended);
    case Flushed::kNotNow:
      return clock->OnPutOff(ended);
    case Flushed::kFailed:
      return clock->OnFailed();
  }
}

}  // namespace h5mirror::vol
