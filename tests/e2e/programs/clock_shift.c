/* A time of day that jumps, for one process: preloaded, it adds to CLOCK_REALTIME the seconds that
 * the 8 bytes of the file $H5MIRROR_TEST_CLOCK hold, and changes with them at once. Monotonic
 * clocks do not jump, as on a machine whose administrator or NTP sets the date.
 *
 * A wait until a time of day is, as the kernel has it, a wait until this clock shows it: it is made
 * of short ones. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define SLICE_NS (20 * 1000 * 1000LL)

typedef long (*syscall_fn)(long, ...);

static volatile const int64_t* shift_s;

__attribute__((constructor)) static void Start(void) {
  const char* path = getenv("H5MIRROR_TEST_CLOCK");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) shift_s = mapped;
  close(fd);
}

static int64_t ShiftNs(void) { return shift_s == NULL ? 0 : *shift_s * NS_PER_S; }

static syscall_fn NextSyscall(void) {
  static syscall_fn next;
  if (next == NULL) next = (syscall_fn)dlsym(RTLD_NEXT, "syscall");
  return next;
}

static int64_t RealNs(void) {
  struct timespec now;
  NextSyscall()(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct timespec FromNs(int64_t ns) {
  const struct timespec time = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
  return time;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (NextSyscall()(SYS_clock_gettime, (long)clock, now) != 0) return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    *now = FromNs(now->tv_sec * NS_PER_S + now->tv_nsec + ShiftNs());
  }
  return 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  const struct timespec shown = FromNs(RealNs() + ShiftNs());
  now->tv_sec = shown.tv_sec;
  now->tv_usec = shown.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  const time_t now = (RealNs() + ShiftNs()) / NS_PER_S;
  if (out != NULL) *out = now;
  return now;
}

static long WaitUntilShown(int* word, int op, int value, const struct timespec* until, int mask) {
  const int64_t until_ns = until->tv_sec * NS_PER_S + until->tv_nsec;
  while (1) {
    const int64_t real_ns = RealNs();
    const int64_t left_ns = until_ns - ShiftNs() - real_ns;
    const struct timespec slice = FromNs(real_ns + (left_ns < 0          ? 0
                                                    : left_ns < SLICE_NS ? left_ns
                                                                         : SLICE_NS));
    const long done =
        NextSyscall()(SYS_futex, word, (long)op, (long)value, &slice, NULL, (long)mask);
    if (done == 0 || errno != ETIMEDOUT || left_ns <= SLICE_NS) return done;
  }
}

long syscall(long number, ...) {
  va_list list;
  long a[6];
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const int waits = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  if (number == SYS_futex && ((int)a[1] & ~FUTEX_PRIVATE_FLAG) == waits && a[3] != 0) {
    return WaitUntilShown((int*)a[0], (int)a[1], (int)a[2], (const struct timespec*)a[3],
                          (int)a[5]);
  }
  return NextSyscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
