#include "cli/output/wait_progress.h"

#include <utility>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/strings.h"
#include "cli/output/progress_line.h"
#include "cli/output/text.h"

namespace h5mirror::tools {

WaitProgress::WaitProgress(Streams& streams, std::string label)
    : streams_(streams), label_(Printable(label)) {
  if (streams_.err_sink == Sink::kTerminal) thread_ = std::thread([this] { Show(); });
}

WaitProgress::~WaitProgress() {
  is_over_.Notify();
  if (thread_.joinable()) thread_.join();
}

void WaitProgress::Show() {
  const absl::Time start = absl::Now();
  if (is_over_.WaitForNotificationWithTimeout(kProgressQuiet)) return;
  do {
    // The label comes last: it may be long, and is cut off.
    const absl::Duration time = absl::Ceil(absl::Now() - start, absl::Seconds(1));
    streams_.err << ProgressOnTerminal(StrCat(HumanDuration(time), "  ", label_),
                                       streams_.width_columns)
                 << std::flush;
  } while (!is_over_.WaitForNotificationWithTimeout(kProgressInterval));
  streams_.err << kProgressWipe << std::flush;
}

}  // namespace h5mirror::tools
