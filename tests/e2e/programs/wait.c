/* A program that follows a file by H5FDh5mirror_wait:
 *   wait URL AFTER_CUT TIMEOUT_MS [COUNT]
 * prints "RESULT CUT" of each of COUNT waits, each after the cut of the one before; where one
 * fails, HDF5's error stack goes to standard error. */
#include <stdio.h>
#include <stdlib.h>

#include "H5FDh5mirror.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  int64_t cut = atoll(argv[2]);
  const int timeout_ms = atoi(argv[3]);
  int count = argc > 4 ? atoi(argv[4]) : 1;
  int result = 0;
  for (; count > 0 && result == 0; --count) {
    result = H5FDh5mirror_wait(argv[1], cut, timeout_ms, &cut);
    printf("%d %lld\n", result, (long long)cut);
    fflush(stdout);
    if (result < 0) H5Eprint2(H5E_DEFAULT, stderr);
  }
  return result < 0 ? 1 : 0;
}
