/* A program that uses H5FDh5mirror.h on a file with several mirrors. It obeys the words on its
 * standard input, a line each, and answers each with one line:
 *   change N    all bytes of the dataset become N
 *   flush       H5Fflush
 *   commit      H5FDh5mirror_commit
 *   status      the state of the file, then SERVER STATE of each mirror
 *   close */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "H5FDh5mirror.h"

#define BYTES (1 << 20)

static unsigned char bytes[BYTES];

static void Status(hid_t file) {
  H5FDh5mirror_status_t status;
  unsigned count = 0;
  H5FDh5mirror_status(file, &status);
  H5FDh5mirror_mirror_count(file, &count);
  printf("%s", H5FDh5mirror_state_name(status.state));
  for (unsigned index = 0; index < count; ++index) {
    char server[256];
    if (H5FDh5mirror_mirror_status(file, index, &status) < 0 ||
        H5FDh5mirror_mirror_server(file, index, server, sizeof server) < 0) {
      exit(3);
    }
    printf(" %s %s", server, H5FDh5mirror_state_name(status.state));
  }
  if (H5FDh5mirror_mirror_status(file, count, &status) >= 0) exit(4);
  printf("\n");
}

int main(int argc, char** argv) {
  char line[100];
  const hsize_t size = BYTES;
  if (argc != 2) return 2;
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &size, NULL);
  const hid_t data =
      H5Dcreate2(file, "d", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (data < 0) return 1;
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "change", 6) == 0) {
      memset(bytes, atoi(line + 6), BYTES);
      printf("changed %d\n",
             H5Dwrite(data, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes));
    } else if (strncmp(line, "flush", 5) == 0) {
      printf("flushed %d\n", H5Fflush(file, H5F_SCOPE_GLOBAL));
    } else if (strncmp(line, "commit", 6) == 0) {
      printf("committed %d\n", H5FDh5mirror_commit(file, "by hand"));
    } else if (strncmp(line, "status", 6) == 0) {
      Status(file);
    } else {
      break;
    }
    fflush(stdout);
  }
  H5Dclose(data);
  H5Sclose(space);
  printf("closed %d\n", H5Fclose(file));
  return 0;
}
