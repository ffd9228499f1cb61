/* A small simulation in C as users write them: a restart file that is created, grown and changed.
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 200
#define COLUMNS 500

static void Check(long long result, const char* what) {
  if (result < 0) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
  }
}

static void WriteStep(hid_t dataset, hsize_t step) {
  static double row[COLUMNS];
  for (int i = 0; i < COLUMNS; ++i) row[i] = (double)step + i * 0.001;
  hsize_t size[2] = {step + 1, COLUMNS}, start[2] = {step, 0}, count[2] = {1, COLUMNS};
  Check(H5Dset_extent(dataset, size), "H5Dset_extent");
  hid_t in_file = H5Dget_space(dataset);
  hid_t in_memory = H5Screate_simple(2, count, NULL);
  Check(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL),
        "H5Sselect_hyperslab");
  Check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, H5P_DEFAULT, row), "H5Dwrite");
  H5Sclose(in_memory);
  H5Sclose(in_file);
}

static void Create(const char* path) {
  hsize_t none[2] = {0, COLUMNS}, unlimited[2] = {H5S_UNLIMITED, COLUMNS}, chunk[2] = {16, COLUMNS};
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  Check(file, "H5Fcreate");
  hid_t space = H5Screate_simple(2, none, unlimited);
  hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
  Check(H5Pset_chunk(layout, 2, chunk), "H5Pset_chunk");
  hid_t dataset =
      H5Dcreate2(file, "steps", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
  Check(dataset, "H5Dcreate2");
  for (hsize_t step = 0; step < ROWS; ++step) {
    WriteStep(dataset, step);
    if (step % 50 == 49) Check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  }
  H5Dclose(dataset);
  H5Pclose(layout);
  H5Sclose(space);
  Check(H5Fclose(file), "H5Fclose");
}

static void Continue(const char* path) {
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  Check(file, "H5Fopen");
  hid_t dataset = H5Dopen2(file, "steps", H5P_DEFAULT);
  for (hsize_t step = ROWS; step < ROWS + 20; ++step) WriteStep(dataset, step);
  hid_t scalar = H5Screate(H5S_SCALAR);
  hid_t attribute =
      H5Acreate2(dataset, "restarted", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
  int one = 1;
  Check(H5Awrite(attribute, H5T_NATIVE_INT, &one), "H5Awrite");
  H5Aclose(attribute);
  H5Sclose(scalar);
  H5Dclose(dataset);
  Check(H5Fclose(file), "H5Fclose");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Create(argv[1]);
  Continue(argv[1]);
  printf("closed %s\n", argv[1]);
  return 0;
}
