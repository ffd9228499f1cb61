// How a file stands to its mirror, for people.
#ifndef H5MIRROR_CLI_OUTPUT_MIRROR_TEXT_H_
#define H5MIRROR_CLI_OUTPUT_MIRROR_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "h5mirror/v1/types.pb.h"

namespace h5mirror::tools {

// One line: "resyncing 37 %, 12.3 MiB of 33 MiB, since 2026-11-03 14:00:00 CET",
// "connected since ..., 3 MiB to come, 2 cuts not yet durable", "degraded since ...: why". Empty
// where the server does not know.
std::string MirrorLine(const v1::MirrorStatus& mirror, absl::TimeZone zone);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_MIRROR_TEXT_H_
