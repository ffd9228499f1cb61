/* What a program does to its data files, for one process: preloaded, it counts the calls on files
 * whose name has
 * "#sio_tmp" in it. At the end the file $H5MIRROR_TEST_COUNTS gets a line for each: name, writes,
 * their bytes, seeks, reads, their bytes, syncs.
 *
 * $H5MIRROR_TEST_FLIP is the end of a name: the last byte of the file that has it is flipped when
 * it is first opened for reading only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 16

struct counts {
  char* name;
  long writes, written, seeks, reads, read, syncs;
};

static struct counts files[FILES_MAX];
static int flipped;

/* That of a descriptor's file, or null for files that do not count. */
static struct counts* CountsOf(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return NULL;
  path[size] = '\0';
  const char* name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
  if (strstr(name, "#sio_tmp") == NULL) return NULL;
  for (int i = 0; i < FILES_MAX; ++i) {
    if (files[i].name == NULL) files[i].name = strdup(name);
    if (strcmp(files[i].name, name) == 0) return &files[i];
  }
  return NULL;
}

static void* Next(const char* name) {
  void* next = dlsym(RTLD_NEXT, name);
  if (next == NULL) abort();
  return next;
}

#define WRITES(fd, result)                                           \
  do {                                                               \
    struct counts* counts = CountsOf(fd);                            \
    if (counts != NULL) ++counts->writes, counts->written += result; \
  } while (0)
#define READS(fd, result)                                        \
  do {                                                           \
    struct counts* counts = CountsOf(fd);                        \
    if (counts != NULL) ++counts->reads, counts->read += result; \
  } while (0)

ssize_t write(int fd, const void* data, size_t size) {
  ssize_t (*next)(int, const void*, size_t) = Next("write");
  const ssize_t result = next(fd, data, size);
  WRITES(fd, result);
  return result;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  ssize_t (*next)(int, const void*, size_t, off_t) = Next("pwrite");
  const ssize_t result = next(fd, data, size, offset);
  WRITES(fd, result);
  return result;
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}

ssize_t read(int fd, void* data, size_t size) {
  ssize_t (*next)(int, void*, size_t) = Next("read");
  const ssize_t result = next(fd, data, size);
  READS(fd, result);
  return result;
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  ssize_t (*next)(int, void*, size_t, off_t) = Next("pread");
  const ssize_t result = next(fd, data, size, offset);
  READS(fd, result);
  return result;
}

ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
  return pread(fd, data, size, offset);
}

off_t lseek(int fd, off_t offset, int whence) {
  off_t (*next)(int, off_t, int) = Next("lseek");
  struct counts* counts = CountsOf(fd);
  if (counts != NULL) ++counts->seeks;
  return next(fd, offset, whence);
}

int fsync(int fd) {
  int (*next)(int) = Next("fsync");
  struct counts* counts = CountsOf(fd);
  if (counts != NULL) ++counts->syncs;
  return next(fd);
}

static void FlipLastByte(const char* path) {
  int (*next)(const char*, int, ...) = Next("open");
  ssize_t (*put)(int, const void*, size_t, off_t) = Next("pwrite");
  ssize_t (*get)(int, void*, size_t, off_t) = Next("pread");
  struct stat found;
  unsigned char byte;
  const int fd = next(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &found) != 0 || get(fd, &byte, 1, found.st_size - 1) != 1) abort();
  byte ^= 1;
  if (put(fd, &byte, 1, found.st_size - 1) != 1) abort();
  close(fd);
}

static int EndsWith(const char* text, const char* end) {
  const size_t size = strlen(text), end_size = strlen(end);
  return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

int open(const char* path, int flags, ...) {
  int (*next)(const char*, int, ...) = Next("open");
  const char* end = getenv("H5MIRROR_TEST_FLIP");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (end != NULL && !flipped && (flags & O_ACCMODE) == O_RDONLY && EndsWith(path, end)) {
    flipped = 1;
    FlipLastByte(path);
  }
  return next(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open(path, flags, mode);
}

__attribute__((destructor)) static void Tell(void) {
  const char* path = getenv("H5MIRROR_TEST_COUNTS");
  FILE* out = path == NULL ? NULL : fopen(path, "w");
  if (out == NULL) return;
  for (int i = 0; i < FILES_MAX && files[i].name != NULL; ++i) {
    const struct counts* f = &files[i];
    fprintf(out, "%s %ld %ld %ld %ld %ld %ld\n", f->name, f->writes, f->written, f->seeks, f->reads,
            f->read, f->syncs);
  }
  fclose(out);
}
