#include "cli/output/batch_progress.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/strings.h"
#include "cli/output/progress_line.h"
#include "cli/output/text.h"

namespace h5mirror::tools {

BatchProgress::BatchProgress(Streams& streams, size_t file_count, uint64_t total_bytes)
    : streams_(streams),
      file_count_(file_count),
      total_bytes_(total_bytes),
      start_(absl::Now()),
      next_(start_ + kProgressQuiet) {}

BatchProgress::~BatchProgress() {
  absl::MutexLock lock(&mutex_);
  Wipe();
}

void BatchProgress::Advance(const std::string& label, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  label_ = label;
  in_hand_bytes_ += bytes;
  Show();
}

void BatchProgress::Back(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  in_hand_bytes_ -= std::min(bytes, in_hand_bytes_);
}

void BatchProgress::FileDone(uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  ++files_done_;
  done_bytes_ += size_bytes;
  Show();
}

void BatchProgress::Tell(absl::FunctionRef<void()> tell) {
  absl::MutexLock lock(&mutex_);
  Wipe();
  tell();
}

std::string BatchProgress::Line(absl::Time now) const {
  const uint64_t done = std::min(done_bytes_ + in_hand_bytes_, total_bytes_);
  // The name comes last: it may be long, and is cut off.
  return StrCat(files_done_, " of ", file_count_, " files  ",
                ProgressAmounts(done, total_bytes_, "", now - start_), "  ", Printable(label_));
}

void BatchProgress::Show() {
  if (streams_.err_sink != Sink::kTerminal) return;
  const absl::Time now = absl::Now();
  if (now < next_) return;
  next_ = now + kProgressInterval;
  shown_ = true;
  streams_.err << ProgressOnTerminal(Line(now), streams_.width_columns) << std::flush;
}

void BatchProgress::Wipe() {
  if (std::exchange(shown_, false)) streams_.err << kProgressWipe << std::flush;
}

}  // namespace h5mirror::tools
