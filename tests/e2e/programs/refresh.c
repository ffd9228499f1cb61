/* A legacy SWMR reader in C: opens the file NAME once, for SWMR reading, and calls H5Drefresh at
 * each line on its standard input. Prints the number of rows of "d", once all are checked. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 500

static hid_t Check(hid_t result, const char* what) {
  if (result < 0) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
  }
  return result;
}

static void PrintRows(hid_t dataset) {
  hsize_t size[2];
  const hid_t space = Check(H5Dget_space(dataset), "H5Dget_space");
  H5Sget_simple_extent_dims(space, size, NULL);
  H5Sclose(space);
  int* values = malloc((size[0] + 1) * COLUMNS * sizeof *values);
  Check(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dread");
  for (hsize_t i = 0; i < size[0] * COLUMNS; ++i) {
    if (values[i] != (int)(i / COLUMNS)) {
      fprintf(stderr, "row %d has a %d\n", (int)(i / COLUMNS), values[i]);
      exit(1);
    }
  }
  free(values);
  printf("%d\n", (int)size[0]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  char line[100];
  if (argc != 2) return 2;
  const hid_t file =
      Check(H5Fopen(argv[1], H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT), "H5Fopen");
  const hid_t dataset = Check(H5Dopen2(file, "d", H5P_DEFAULT), "H5Dopen2");
  PrintRows(dataset);
  while (fgets(line, sizeof line, stdin) != NULL) {
    Check(H5Drefresh(dataset), "H5Drefresh");
    PrintRows(dataset);
  }
  H5Dclose(dataset);
  Check(H5Fclose(file), "H5Fclose");
  return 0;
}
