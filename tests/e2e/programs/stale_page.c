/* A page as it was a cut ago, once: preloaded into a program that reads what stamp.py wrote, it
 * waits until there is a file $H5MIRROR_TEST_STALE, which it removes, and then changes what the
 * next pread() of the thread $H5MIRROR_TEST_THREAD gives, where that holds a run of one number, to
 * the number before. No checksum can tell: in h5mirrord that is a stale page served, in a writer an
 * extent that its cut misses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define RUN_WORDS 1024

typedef ssize_t (*pread_fn)(int, void*, size_t, off_t);

static int IsTheThread(void) {
  const char* wanted = getenv("H5MIRROR_TEST_THREAD");
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  return wanted != NULL && strcmp(name, wanted) == 0;
}

/* A run of one number of 2 or more; NULL: there is none. */
static char* FindRun(char* bytes, size_t size) {
  for (size_t phase = 0; phase < 4; ++phase) {
    uint32_t before = 0;
    size_t equal = 0;
    for (size_t at = phase; at + 4 <= size; at += 4) {
      uint32_t word;
      memcpy(&word, bytes + at, 4);
      equal = word == before && word >= 2 && word < 65536 ? equal + 1 : 0;
      before = word;
      if (equal == RUN_WORDS - 1) return bytes + at + 4 - 4 * RUN_WORDS;
    }
  }
  return NULL;
}

static ssize_t Age(void* bytes, ssize_t got) {
  const char* plan = getenv("H5MIRROR_TEST_STALE");
  if (plan == NULL || got < 4 * RUN_WORDS || !IsTheThread() || access(plan, F_OK) != 0) return got;
  char* run = FindRun(bytes, (size_t)got);
  if (run == NULL || unlink(plan) != 0) return got;
  for (size_t i = 0; i < RUN_WORDS; ++i) {
    uint32_t word;
    memcpy(&word, run + 4 * i, 4);
    --word;
    memcpy(run + 4 * i, &word, 4);
  }
  return got;
}

ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  static pread_fn next;
  if (next == NULL) next = (pread_fn)dlsym(RTLD_NEXT, "pread64");
  return Age(bytes, next(file, bytes, size, offset));
}

ssize_t pread64(int file, void* bytes, size_t size, off_t offset) {
  return pread(file, bytes, size, offset);
}
