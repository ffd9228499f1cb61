// The common part of the lines that show progress.
#ifndef H5MIRROR_CLI_OUTPUT_PROGRESS_LINE_H_
#define H5MIRROR_CLI_OUTPUT_PROGRESS_LINE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace h5mirror::tools {

// Shorter work shows nothing.
inline constexpr absl::Duration kProgressQuiet = absl::Milliseconds(500);
inline constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);
inline constexpr char kProgressWipe[] = "\r\033[K";

// "1 GiB of 4 GiB (25 %)  80 MiB/s  38 s left". `unit` empty: bytes; `total` 0: not known.
std::string ProgressAmounts(uint64_t done, uint64_t total, const std::string& unit,
                            absl::Duration time);

// The line over the one before it, cut off at the terminal's width.
std::string ProgressOnTerminal(std::string_view line, int width_columns);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_PROGRESS_LINE_H_
