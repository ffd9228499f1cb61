// Standard input, output and error of a program that was started with some of them closed, as by
// `program >&- 2>&-`.
#pragma once

namespace h5mirror {

// Takes those of the descriptors 0, 1 and 2 that are closed. Else the next file that is opened gets
// one of them, and the program's own output would be written into that file. Reads and writes of
// them fail with EBADF as before, and children have them closed. For the begin of main(): other
// threads must not open files meanwhile.
void HoldStandardStreams();

}  // namespace h5mirror
