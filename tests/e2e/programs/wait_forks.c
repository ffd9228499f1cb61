/* Forks again and again while a thread of it waits in H5FDh5mirror_wait:
 *   wait_forks URL AFTER_CUT CHILDREN
 * Child N makes childN.h5. Prints "forked" then, and "RESULT CUT" when the wait has ended. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "H5FDh5mirror.h"

static const char* url;
static int64_t cut;
static int result;

static void* Follow(void* unused) {
  (void)unused;
  result = H5FDh5mirror_wait(url, cut, 60000, &cut);
  if (result < 0) H5Eprint2(H5E_DEFAULT, stderr);
  return NULL;
}

static int MakeFile(int number) {
  char name[32];
  snprintf(name, sizeof name, "child%d.h5", number);
  const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return 1;
  const hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (group < 0) return 1;
  H5Gclose(group);
  return H5Fclose(file) < 0 ? 1 : 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  url = argv[1];
  cut = atoll(argv[2]);
  /* The driver is loaded, and its session used, before the first fork. */
  if (H5open() < 0 || MakeFile(0) != 0) return 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, Follow, NULL) != 0) return 1;
  for (int number = 1; number <= atoi(argv[3]); ++number) {
    usleep(100000);
    const pid_t child = fork();
    if (child == 0) _exit(MakeFile(number));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  puts("forked");
  fflush(stdout);
  pthread_join(thread, NULL);
  printf("%d %lld\n", result, (long long)cut);
  return result < 0 ? 1 : 0;
}
