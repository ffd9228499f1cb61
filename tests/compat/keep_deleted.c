/* Preloaded into HDF5's parallel tests, which delete their files: each *.h5 file gets a second name
 * before, below the directory that KEEP_DELETED names. There it can be compared with its mirror.
 *
 *   KEEP_DELETED/PROCESS-NUMBER-NAME.h5
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int count;

static void Keep(const char* name) {
  const int saved = errno;
  const char* const directory = getenv("KEEP_DELETED");
  const size_t length = strlen(name);
  if (directory != NULL && length > 3 && strcmp(name + length - 3, ".h5") == 0) {
    const char* const slash = strrchr(name, '/');
    char kept[4096];
    snprintf(kept, sizeof kept, "%s/%d-%d-%s", directory, (int)getpid(),
             atomic_fetch_add(&count, 1), slash != NULL ? slash + 1 : name);
    if (link(name, kept) != 0 && errno != ENOENT) perror(kept);
  }
  errno = saved;
}

int unlink(const char* name) {
  Keep(name);
  int (*real)(const char*) = (int (*)(const char*))dlsym(RTLD_NEXT, "unlink");
  return real(name);
}

int remove(const char* name) {
  Keep(name);
  int (*real)(const char*) = (int (*)(const char*))dlsym(RTLD_NEXT, "remove");
  return real(name);
}
