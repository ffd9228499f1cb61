/* Preloaded: lets another program go first. Before the first lock that is to keep all others out of
 * a file, the shell runs the command that BEFORE_LOCK holds, without this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

int flock(int fd, int operation) {
  int (*real)(int, int) = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "flock");
  const char* const command = getenv("BEFORE_LOCK");
  if (command != NULL && (operation & LOCK_EX) != 0) {
    char* const copy = strdup(command);
    unsetenv("BEFORE_LOCK");
    unsetenv("LD_PRELOAD");
    if (copy == NULL || system(copy) != 0) abort();
    free(copy);
  }
  return real(fd, operation);
}
