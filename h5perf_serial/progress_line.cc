#include "h5perf_serial/progress_line.h"

namespace h5mirror::perf {
namespace {

constexpr std::chrono::milliseconds kQuiet(500);
constexpr std::chrono::milliseconds kInterval(200);

}  // namespace

ProgressLine::ProgressLine(std::ostream& out, std::string label, uint64_t total)
    : out_(out), label_(std::move(label)), total_(total), next_(Clock::now() + kQuiet) {}

ProgressLine::~ProgressLine() {
  if (shown_) out_ << "\r\033[K" << std::flush;
}

void ProgressLine::Print(uint64_t done) {
  next_ = Clock::now() + kInterval;
  shown_ = true;
  out_ << "\r" << label_ << ": " << 100 * done / total_ << " %\033[K" << std::flush;
}

}  // namespace h5mirror::perf
