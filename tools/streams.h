// Where a verb writes to. Tests hand in string streams.
#ifndef H5MIRROR_TOOLS_STREAMS_H_
#define H5MIRROR_TOOLS_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <ostream>

#include "absl/time/time.h"

namespace h5mirror::tools {

// What reads the other end.
enum class Sink { kTerminal, kPipe };

// One long work on many files, of which each has a Progress of its own.
struct Batch {
  uint64_t total_bytes = 0;  // of all files
  size_t file_count = 0;
  absl::Time start;
  uint64_t done_bytes = 0;  // of those that are done
  size_t file_number = 0;   // the one in hand, from 1
};

struct Streams {
  std::ostream& out;  // results
  std::ostream& err;  // errors, notes and progress
  Sink out_sink = Sink::kPipe;
  Sink err_sink = Sink::kPipe;
  int width_columns = 80;  // of the terminal
  absl::TimeZone zone = absl::UTCTimeZone();
  // While one is under way: what Progress shows. Borrowed.
  const Batch* batch = nullptr;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_STREAMS_H_
