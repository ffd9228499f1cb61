/* A page as it was a cut ago: preloaded into a program that reads what stamp.py wrote, it
 * waits until there is a file $H5MIRROR_TEST_STALE, which it removes, and then changes what the
 * next pread() of the thread $H5MIRROR_TEST_THREAD gives. No checksum can tell: in h5mirrord that
 * is a stale page served, in a writer an extent that its cut misses.
 *
 * $H5MIRROR_TEST_STALE_WHAT says what becomes old: "raw", a run of one number, which becomes the
 * number before; or "header", the object header of the dataset "rows" of a file in the latest
 * format, which becomes, bytes and checksum, what an earlier pread() of such a thread gave, and is
 * so in all reads of its cut: what is read is not always what is used. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define RUN_WORDS 1024
#define HEADER_MAX 2048

typedef ssize_t (*pread_fn)(int, void*, size_t, off_t);

struct Header {
  uint64_t rows;
  size_t size;
  char bytes[HEADER_MAX];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* With the mutex. */
static struct Header newer, older;
static uint64_t aged_rows;

static int IsTheThread(void) {
  const char* wanted = getenv("H5MIRROR_TEST_THREAD");
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  return wanted != NULL && strcmp(name, wanted) == 0;
}

static int IsPlanned(void) {
  const char* plan = getenv("H5MIRROR_TEST_STALE");
  return plan != NULL && access(plan, F_OK) == 0;
}

static int TakePlan(void) { return unlink(getenv("H5MIRROR_TEST_STALE")) == 0; }

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

static void AgeRun(char* bytes, size_t size) {
  if (size < 4 * RUN_WORDS || !IsPlanned()) return;
  char* run = FindRun(bytes, size);
  if (run == NULL || !TakePlan()) return;
  for (size_t i = 0; i < RUN_WORDS; ++i) {
    uint32_t word;
    memcpy(&word, run + 4 * i, 4);
    --word;
    memcpy(run + 4 * i, &word, 4);
  }
}

/* The bytes of the first chunk of an object header of version 2, with its checksum; 0: it is none,
 * or goes on beyond `size`. HDF5 File Format Specification, IV.A.1.b. */
static size_t HeaderSize(const char* at, size_t size) {
  if (size < 32 || memcmp(at, "OHDR\2", 5) != 0) return 0;
  const int flags = at[5];
  const size_t width = (size_t)1 << (flags & 3);
  const size_t prefix = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
  uint64_t messages = 0;
  memcpy(&messages, at + prefix, width);
  const size_t whole = prefix + width + messages + 4;
  return messages < HEADER_MAX && whole <= HEADER_MAX && whole <= size ? whole : 0;
}

/* How many rows the header's dataset has, as stamp.py makes "rows"; 0: it is another one. */
static uint64_t RowsOf(const char* header, size_t size) {
  /* Extents, then the largest ones. */
  const uint64_t wanted[] = {100, UINT64_MAX, 100};
  for (size_t at = 6; at + 8 + sizeof wanted <= size; ++at) {
    uint64_t rows;
    memcpy(&rows, header + at, 8);
    if (memcmp(header + at + 8, wanted, sizeof wanted) == 0 && rows < 65536) return rows;
  }
  return 0;
}

static void AgeHeader(char* bytes, size_t size) {
  char* at = bytes;
  while ((at = memmem(at, (size_t)(bytes + size - at), "OHDR", 4)) != NULL) {
    const size_t whole = HeaderSize(at, (size_t)(bytes + size - at));
    const uint64_t rows = whole == 0 ? 0 : RowsOf(at, whole);
    if (rows > newer.rows) {
      older = newer;
      newer.rows = rows;
      newer.size = whole;
      memcpy(newer.bytes, at, whole);
    }
    if (rows != 0 && rows == newer.rows && older.size == whole && IsPlanned() && TakePlan()) {
      aged_rows = rows;
    }
    if (rows != 0 && rows == aged_rows) memcpy(at, older.bytes, whole);
    at += 4;
  }
}

static ssize_t Age(void* bytes, ssize_t got) {
  const char* what = getenv("H5MIRROR_TEST_STALE_WHAT");
  if (what == NULL || got <= 0 || !IsTheThread()) return got;
  pthread_mutex_lock(&mutex);
  (strcmp(what, "header") == 0 ? AgeHeader : AgeRun)(bytes, (size_t)got);
  pthread_mutex_unlock(&mutex);
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
