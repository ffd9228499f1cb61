#include "cli/output/mirror_text.h"

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "rpc/mirror_state_name.h"

namespace h5mirror::tools {
namespace {

std::string Bytes(int64_t count) {
  return HumanBytes(static_cast<uint64_t>(std::max<int64_t>(count, 0)));
}

// Rounds down: 100 % only when everything was sent.
int64_t Percent(int64_t part, int64_t whole) {
  if (whole <= 0 || part <= 0) return 0;
  if (part >= whole) return 100;
  return std::min<int64_t>(
      99, static_cast<int64_t>(100.0 * static_cast<double>(part) / static_cast<double>(whole)));
}

}  // namespace

std::string MirrorLine(const v1::MirrorStatus& mirror, absl::TimeZone zone) {
  if (mirror.state() == v1::MIRROR_STATE_UNSPECIFIED) return "";
  std::string line(rpc::MirrorStateName(mirror.state()));
  const bool resyncs = mirror.state() == v1::MIRROR_STATE_RESYNCING;
  if (resyncs) {
    const int64_t sent = mirror.resync_sent_bytes(), total = mirror.resync_total_bytes();
    StrAppend(&line, " ", Percent(sent, total), " %, ", Bytes(sent), " of ", Bytes(total), ",");
  }
  if (const absl::Time since = FromProto(mirror.since_time()); since != absl::InfinitePast()) {
    StrAppend(&line, " since ", LocalTime(since, zone));
  }
  if (mirror.pending_bytes() > 0 && !resyncs) {
    StrAppend(&line, ", ", Bytes(mirror.pending_bytes()), " to come");
  }
  // Most of them have come, and wait for the server's next sync.
  if (const int64_t cuts = mirror.pending_cuts(); cuts > 0 && !resyncs) {
    StrAppend(&line, ", ", cuts, cuts == 1 ? " cut" : " cuts", " not yet durable");
  }
  if (!mirror.detail().empty()) StrAppend(&line, ": ", Printable(mirror.detail()));
  return line;
}

}  // namespace h5mirror::tools
