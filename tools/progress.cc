#include "tools/progress.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/strings.h"
#include "tools/text.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kQuiet = absl::Milliseconds(500);
constexpr absl::Duration kInterval = absl::Milliseconds(200);

}  // namespace

Progress::Progress(Streams& streams, std::string label, uint64_t total_bytes)
    : Progress(streams, std::move(label), total_bytes, "") {}

Progress::Progress(Streams& streams, std::string label, uint64_t total_bytes, std::string unit)
    : streams_(streams),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_bytes_(total_bytes),
      start_(absl::Now()),
      next_((streams.batch != nullptr ? streams.batch->start : start_) + kQuiet) {}

Progress::~Progress() {
  if (shown_) streams_.err << "\r\033[K" << std::flush;
}

std::string Progress::Amount(uint64_t amount) const {
  return unit_.empty() ? HumanBytes(amount) : StrCat(amount, " ", unit_);
}

std::string Progress::Line(uint64_t done, absl::Time now) const {
  const Batch* const batch = streams_.batch;
  uint64_t total = total_bytes_;
  absl::Time start = start_;
  std::string line;
  if (batch != nullptr) {
    line = StrCat(batch->file_number, " of ", batch->file_count, " files  ");
    if (total > 0) done = std::min(done, total);
    done += batch->done_bytes;
    total = batch->total_bytes;
    start = batch->start;
  }
  const double rate =
      static_cast<double>(done) / std::max(absl::ToDoubleSeconds(now - start), 0.001);
  StrAppend(&line, Amount(done));
  if (total > 0) {
    const double part = std::min(static_cast<double>(done) / static_cast<double>(total), 1.0);
    absl::StrAppendFormat(&line, " of %s (%.0f %%)", Amount(total), 100 * part);
  }
  StrAppend(&line, "  ", Amount(static_cast<uint64_t>(rate)), "/s");
  if (total > done && rate >= 1) {
    const absl::Duration left = absl::Seconds(static_cast<double>(total - done) / rate);
    StrAppend(&line, "  ", HumanDuration(absl::Ceil(left, absl::Seconds(1))), " left");
  }
  // The name may be long, and is what is cut off.
  return batch != nullptr ? StrCat(line, "  ", Printable(label_))
                          : StrCat(Printable(label_), "  ", line);
}

void Progress::Update(uint64_t done_bytes) {
  if (streams_.err_sink != Sink::kTerminal) return;
  const absl::Time now = absl::Now();
  if (now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  streams_.err << "\r"
               << Clip(Line(done_bytes, now),
                       static_cast<size_t>(std::max(streams_.width_columns, 20)))
               << "\033[K" << std::flush;
}

}  // namespace h5mirror::tools
