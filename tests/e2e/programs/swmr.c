/* A legacy SWMR writer in C: creates the file NAME, and after H5Fstart_swmr_write adds a row at
 * each line on its standard input. H5Dflush is all that it does to show it. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 500

static hid_t Check(hid_t result, const char* what) {
  if (result < 0) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
  }
  return result;
}

static hid_t MakeDataset(hid_t file) {
  const hsize_t none[2] = {0, COLUMNS}, most[2] = {H5S_UNLIMITED, COLUMNS}, chunk[2] = {4, COLUMNS};
  const hid_t space = H5Screate_simple(2, none, most);
  const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
  Check(H5Pset_chunk(layout, 2, chunk), "H5Pset_chunk");
  const hid_t dataset = Check(
      H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, layout, H5P_DEFAULT), "H5Dcreate2");
  H5Pclose(layout);
  H5Sclose(space);
  return dataset;
}

static void AddRow(hid_t dataset, hsize_t row) {
  static int values[COLUMNS];
  for (int i = 0; i < COLUMNS; ++i) values[i] = (int)row;
  const hsize_t size[2] = {row + 1, COLUMNS}, start[2] = {row, 0}, count[2] = {1, COLUMNS};
  Check(H5Dset_extent(dataset, size), "H5Dset_extent");
  const hid_t in_file = H5Dget_space(dataset);
  const hid_t in_memory = H5Screate_simple(2, count, NULL);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL);
  Check(H5Dwrite(dataset, H5T_NATIVE_INT, in_memory, in_file, H5P_DEFAULT, values), "H5Dwrite");
  H5Sclose(in_memory);
  H5Sclose(in_file);
  Check(H5Dflush(dataset), "H5Dflush");
}

int main(int argc, char** argv) {
  char line[100];
  if (argc != 2) return 2;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = Check(H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
  const hid_t dataset = MakeDataset(file);
  Check(H5Fstart_swmr_write(file), "H5Fstart_swmr_write");
  puts("ready");
  fflush(stdout);
  for (hsize_t row = 0; fgets(line, sizeof line, stdin) != NULL; ++row) {
    if (strncmp(line, "close", 5) == 0) break;
    AddRow(dataset, row);
    puts("done");
    fflush(stdout);
  }
  H5Dclose(dataset);
  H5Pclose(access);
  Check(H5Fclose(file), "H5Fclose");
  puts("closed");
  return 0;
}
