#include "cli/output/progress.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/strings.h"
#include "cli/output/batch_progress.h"
#include "cli/output/progress_line.h"
#include "cli/output/text.h"

namespace h5mirror::tools {

Progress::Progress(Streams& streams, std::string label, uint64_t total_bytes)
    : Progress(streams, std::move(label), total_bytes, "") {}

Progress::Progress(Streams& streams, std::string label, uint64_t total_bytes, std::string unit)
    : streams_(streams),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_bytes_(total_bytes),
      start_(absl::Now()),
      next_(start_ + kProgressQuiet) {}

Progress::~Progress() {
  if (streams_.batch != nullptr) streams_.batch->Back(counted_bytes_);
  Wipe();
}

void Progress::Wipe() {
  if (std::exchange(shown_, false)) streams_.err << kProgressWipe << std::flush;
}

void Progress::Update(uint64_t done_bytes) {
  if (streams_.batch != nullptr) {
    // Of one file, which may be gone through more than once.
    const uint64_t done = std::min(done_bytes, total_bytes_);
    if (done <= counted_bytes_) return;
    streams_.batch->Advance(label_, done - counted_bytes_);
    counted_bytes_ = done;
    return;
  }
  if (streams_.err_sink != Sink::kTerminal) return;
  const absl::Time now = absl::Now();
  if (now < next_) return;
  next_ = now + kProgressInterval;
  shown_ = true;
  const std::string line = StrCat(Printable(label_), "  ",
                                  ProgressAmounts(done_bytes, total_bytes_, unit_, now - start_));
  streams_.err << ProgressOnTerminal(line, streams_.width_columns) << std::flush;
}

}  // namespace h5mirror::tools
