// Preloaded: the program is killed before its KILL_AT-th call that changes a file, with KILL_HALF
// in the middle of a write, and stopped before the STOP_AT-th; FAIL_COUNT calls from the FAIL_AT-th
// on fail, a write after half of its first piece. With KILL_FILE only calls on that open file
// count; the program may change that as it goes. With KILL_COUNT the number of such calls is
// written there at a normal end, with CALL_LOG the names of some of them as they come.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define NO_FILE (-1)  // of a call that names what it changes

static long calls;
static int dies;  // after half of the write

static int counts(int fd) {
  const char* path = getenv("KILL_FILE");
  struct stat wanted, changed;
  if (!path) return 1;
  return stat(path, &wanted) == 0 && fstat(fd, &changed) == 0 && wanted.st_dev == changed.st_dev &&
         wanted.st_ino == changed.st_ino;
}

// Whether the call must fail.
static int step(int fd, int is_write) {
  const char* at = getenv("KILL_AT");
  if (!counts(fd)) return 0;
  ++calls;
  if (at && calls == atol(at)) {
    dies = is_write && getenv("KILL_HALF");
    if (!dies) kill(getpid(), SIGKILL);
    return 1;
  }
  const char* stop = getenv("STOP_AT");
  if (stop && calls == atol(stop)) kill(getpid(), SIGSTOP);
  const char* fail = getenv("FAIL_AT");
  const char* count = getenv("FAIL_COUNT");
  if (!fail || calls < atol(fail) || calls >= atol(fail) + (count ? atol(count) : 1)) return 0;
  errno = ENOSPC;
  return 1;
}

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("KILL_COUNT");
  FILE* out = path ? fopen(path, "w") : NULL;
  if (!out) return;
  fprintf(out, "%ld\n", calls);
  fclose(out);
}

static void note(const char* name, const char* path) {
  const char* log = getenv("CALL_LOG");
  FILE* out = log ? fopen(log, "a") : NULL;
  if (!out) return;
  fprintf(out, "%s %s\n", name, path);
  fclose(out);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define STEP_OF(result, name, fd, parameters, arguments) \
  result name parameters {                               \
    if (step(fd, 0)) return -1;                          \
    return REAL(name) arguments;                         \
  }

static ssize_t half(int fd, const void* bytes, size_t length, off_t offset) {
  REAL(pwrite)(fd, bytes, length / 2, offset);
  if (dies) kill(getpid(), SIGKILL);
  errno = ENOSPC;
  return -1;
}

#define STEP_OF_WRITE(name)                                           \
  ssize_t name(int fd, const void* b, size_t n, off_t o) {            \
    return step(fd, 1) ? half(fd, b, n, o) : REAL(name)(fd, b, n, o); \
  }
#define STEP_OF_WRITEV(name)                                                             \
  ssize_t name(int fd, const struct iovec* v, int n, off_t o) {                          \
    return step(fd, 1) ? half(fd, v->iov_base, v->iov_len, o) : REAL(name)(fd, v, n, o); \
  }
STEP_OF_WRITE(pwrite)
STEP_OF_WRITE(pwrite64)
STEP_OF_WRITEV(pwritev)
STEP_OF_WRITEV(pwritev64)
STEP_OF(int, ftruncate, fd, (int fd, off_t n), (fd, n))
STEP_OF(int, ftruncate64, fd, (int fd, off64_t n), (fd, n))
int unlinkat(int d, const char* p, int f) {
  if (step(NO_FILE, 0)) return -1;
  note("unlinkat", p);
  return REAL(unlinkat)(d, p, f);
}
STEP_OF(int, mkdirat, NO_FILE, (int d, const char* p, mode_t m), (d, p, m))
STEP_OF(int, linkat, NO_FILE, (int a, const char* p, int b, const char* q, int f), (a, p, b, q, f))
STEP_OF(int, renameat, NO_FILE, (int a, const char* p, int b, const char* q), (a, p, b, q))
STEP_OF(int, rename, NO_FILE, (const char* p, const char* q), (p, q))
STEP_OF(int, fdatasync, fd, (int fd), (fd))
int fsync(int fd) {
  if (step(fd, 0)) return -1;
  note("fsync", "");
  return REAL(fsync)(fd);
}
STEP_OF(ssize_t, copy_file_range, b, (int a, off64_t* x, int b, off64_t* y, size_t n, unsigned f),
        (a, x, b, y, n, f))

// openat2(2) has no function of its own.
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_openat2 && (*(unsigned long long*)a[2] & O_CREAT) && step(NO_FILE, 0)) {
    return -1;
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
