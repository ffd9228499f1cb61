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
      next_(start_ + kQuiet) {}

Progress::~Progress() {
  if (shown_) streams_.err << "\r\033[K" << std::flush;
}

std::string Progress::Amount(uint64_t amount) const {
  return unit_.empty() ? HumanBytes(amount) : StrCat(amount, " ", unit_);
}

void Progress::Update(uint64_t done_bytes) {
  if (streams_.err_sink != Sink::kTerminal) return;
  const absl::Time now = absl::Now();
  if (now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  const double seconds = absl::ToDoubleSeconds(now - start_);
  const auto rate = static_cast<uint64_t>(static_cast<double>(done_bytes) / seconds);
  std::string line = StrCat(Printable(label_), "  ", Amount(done_bytes));
  if (total_bytes_ > 0) {
    const double part = static_cast<double>(done_bytes) / static_cast<double>(total_bytes_);
    absl::StrAppendFormat(&line, " of %s (%.0f %%)", Amount(total_bytes_),
                          100 * std::min(part, 1.0));
  }
  StrAppend(&line, "  ", Amount(rate), "/s");
  streams_.err << "\r" << Clip(line, static_cast<size_t>(std::max(streams_.width_columns, 20)))
               << "\033[K" << std::flush;
}

}  // namespace h5mirror::tools
