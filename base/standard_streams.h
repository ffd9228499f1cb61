// Standard input, output and error of a program that was started with some of them closed, as by
// `program >&- 2>&-`, or whose output has no room.
#pragma once

#include "absl/status/status.h"

namespace h5mirror {

// Occupies the closed ones of the descriptors 0, 1 and 2. Else the next file that is opened would
// get one of these numbers, and the program's own output would go into that file. Reads and writes
// of them still fail with EBADF, and children have them closed. Call it at the start of main():
// other threads must not open files meanwhile.
void HoldStandardStreams();

// Writes out what std::cout holds. kInternal: output was lost, now or before; the message has the
// system's reason, where it is known. For the end of main(), and where output is given only once.
absl::Status FlushStandardOutput();

}  // namespace h5mirror
