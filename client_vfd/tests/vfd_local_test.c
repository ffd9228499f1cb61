/* What the driver does locally must be what sec2 does. No server takes part: files are passed
 * through, or mirrored to a port where nobody listens. */
#include <H5FDdevelop.h>
#include <H5FDh5mirror.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "vfd_local_test.c:%d: failed: %s\n", __LINE__, #condition); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

static char directory[] = "/var/tmp/vfd_local_XXXXXX";
static char path[256];

static hid_t list_with(const char* config) {
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  CHECK(H5Pset_driver_by_name(fapl, "h5mirror", config) >= 0);
  return fapl;
}

static void write_numbers(hid_t file, const char* name, int first) {
  hsize_t count = 1000;
  int numbers[1000];
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  int i;
  for (i = 0; i < 1000; i++) numbers[i] = first + i;
  CHECK(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
  H5Dclose(set);
  H5Sclose(space);
}

static void check_numbers(const char* name, int first) {
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS); /* sec2 */
  hid_t file, set;
  int numbers[1000];
  H5Pset_file_locking(fapl, 0, 1);
  file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
  H5Pclose(fapl);
  CHECK(file >= 0);
  set = H5Dopen2(file, name, H5P_DEFAULT);
  CHECK(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
  CHECK(numbers[0] == first && numbers[999] == first + 999);
  H5Dclose(set);
  H5Fclose(file);
}

static herr_t keep_description(unsigned n, const H5E_error2_t* error, void* text) {
  (void)n;
  if (error->desc != NULL) snprintf(text, 1024, "%s", error->desc);
  return 0;
}

/* The deepest error of the last failed call. */
static void deepest_error(char* text) {
  text[0] = '\0';
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, text);
  /* Upward ends at the API call; the first visited is the deepest. */
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_description, text);
}

static void round_trip(const char* config) {
  hid_t fapl = list_with(config);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  CHECK(file >= 0);
  write_numbers(file, "a", 7);
  CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
  write_numbers(file, "b", 8);
  CHECK(H5Fclose(file) >= 0);
  check_numbers("a", 7);
  check_numbers("b", 8);
  H5Pclose(fapl);
  printf("round trip with '%s'\n", config);
}

static void missing_file_says_errno(void) {
  hid_t fapl = list_with("mode=off");
  char text[1024];
  hid_t file;
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  file = H5Fopen("/no/such/file.h5", H5F_ACC_RDONLY, fapl);
  CHECK(file < 0);
  deepest_error(text);
  CHECK(strstr(text,
               "unable to open file: name = '/no/such/file.h5', errno = 2, error message = "
               "'No such file or directory'") != NULL);
  H5Pclose(fapl);
}

static void wrong_key_is_named(void) {
  hid_t fapl = list_with("sever=a");
  char text[1024];
  CHECK(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl) < 0);
  deepest_error(text);
  CHECK(strstr(text, "unknown key 'sever'") != NULL && strstr(text, "server") != NULL);
  H5Pclose(fapl);
}

/* Another process's lock, as seen by an open here. */
static void locks_are_sec2s(void) {
  hid_t fapl = list_with("mode=off");
  char text[1024];
  hid_t file, again;
  int fd;

  file = H5Fopen(path, H5F_ACC_RDWR, fapl);
  CHECK(file >= 0);
  fd = open(path, O_RDONLY);
  CHECK(flock(fd, LOCK_SH | LOCK_NB) < 0);   /* held exclusively */
  again = H5Fopen(path, H5F_ACC_RDWR, fapl); /* the same file in the same process: shared */
  CHECK(again >= 0);
  H5Fclose(again);
  CHECK(flock(fd, LOCK_SH | LOCK_NB) < 0);
  H5Fclose(file);
  CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);

  CHECK(H5Fopen(path, H5F_ACC_RDWR, fapl) < 0);
  deepest_error(text);
  CHECK(strstr(text, "unable to lock file, errno = 11") != NULL);
  CHECK(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl) < 0);
  flock(fd, LOCK_UN);
  check_numbers("a", 7); /* the refused 'w' has not emptied it */

  CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
  H5Pset_file_locking(fapl, 0, 1);
  file = H5Fopen(path, H5F_ACC_RDWR, fapl);
  CHECK(file >= 0);
  H5Fclose(file);
  close(fd);
  H5Pclose(fapl);
}

static void untouched_open_leaves_no_trace(void) {
  hid_t fapl = list_with("server=127.0.0.1:1");
  struct stat before, after, record;
  char record_path[300];
  hid_t file;
  CHECK(stat(path, &before) == 0);
  file = H5Fopen(path, H5F_ACC_RDWR, fapl);
  CHECK(file >= 0 && H5Fclose(file) >= 0);
  CHECK(stat(path, &after) == 0);
  CHECK(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec &&
        before.st_mtim.tv_sec == after.st_mtim.tv_sec);
  snprintf(record_path, sizeof record_path, "%s.h5m/client.json", path);
  CHECK(stat(record_path, &record) != 0);
  H5Pclose(fapl);
}

/* A forked child's writes to an inherited file arrive, as with sec2. */
static void forked_child_writes(void) {
  hid_t fapl = list_with("server=127.0.0.1:1;timeout=500ms");
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  pid_t child;
  int status = 0;
  CHECK(file >= 0);
  write_numbers(file, "a", 1);
  CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
  child = fork();
  if (child == 0) {
    write_numbers(file, "child", 5);
    _exit(H5Fclose(file) < 0 ? 1 : 0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  check_numbers("child", 5);
  _Exit(0); /* the parent's own view is stale now: do not write it back */
}

int main(void) {
  pid_t child;
  int status = 0;
  CHECK(mkdtemp(directory) != NULL);
  snprintf(path, sizeof path, "%s/file.h5", directory);
  round_trip("mode=off");
  round_trip("mode=off;under=log");
  round_trip("server=127.0.0.1:1;timeout=1s");
  round_trip("mode=off;metadata=memory");
  round_trip("mode=off;metadata=memory;metadata_memory=4KiB");
  round_trip("server=127.0.0.1:1;timeout=1s;metadata=memory");
  round_trip("mode=off");
  missing_file_says_errno();
  wrong_key_is_named();
  locks_are_sec2s();
  {
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s.h5m'", path);
    CHECK(system(command) == 0);
  }
  untouched_open_leaves_no_trace();
  fflush(stdout);
  child = fork();
  if (child == 0) forked_child_writes();
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  {
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    CHECK(system(command) == 0);
  }
  puts("all good");
  return 0;
}
