// Preloaded: a disk that can share blocks. FICLONE makes the bytes of one file those of another.
// Like the real call, and unlike a copy, it leaves later bytes as they are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (request != FICLONE)
    return ((int (*)(int, unsigned long, void*))dlsym(RTLD_NEXT, "ioctl"))(fd, request, argument);
  char bytes[4096];
  off_t at = 0;
  ssize_t got;
  while ((got = pread((int)(long)argument, bytes, sizeof(bytes), at)) > 0) {
    if (pwrite(fd, bytes, (size_t)got, at) != got) return -1;
    at += got;
  }
  return (int)got;
}
