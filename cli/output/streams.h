// The output streams of a verb. Tests pass string streams.
#ifndef H5MIRROR_CLI_OUTPUT_STREAMS_H_
#define H5MIRROR_CLI_OUTPUT_STREAMS_H_

#include <ostream>

#include "absl/time/time.h"

namespace h5mirror::tools {

// The reader of the other end.
enum class Sink { kTerminal, kPipe };

class BatchProgress;

struct Streams {
  std::ostream& out;  // results
  std::ostream& err;  // errors, notes and progress
  Sink out_sink = Sink::kPipe;
  Sink err_sink = Sink::kPipe;
  int width_columns = 80;  // of the terminal
  absl::TimeZone zone = absl::UTCTimeZone();
  // While one is under way: what Progress counts for. Borrowed.
  BatchProgress* batch = nullptr;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_STREAMS_H_
