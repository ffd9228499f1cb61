/* A reader that has the live file NAME of test_live_reader.py open until it is told otherwise:
 * looks at all of it, prints which step it shows, and does so again at each line on its standard
 * input. "again" opens it anew first. What is of two steps ends it. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 1000
#define BIG 400000

static void Demand(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

static int Attribute(hid_t file) {
  int64_t n = -1;
  const hid_t attribute = H5Aopen(file, "n", H5P_DEFAULT);
  Demand(attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT64, &n) >= 0, "n");
  H5Aclose(attribute);
  return (int)n;
}

static void CheckRow(hid_t file, int n) {
  int values[COLUMNS];
  hsize_t size[2] = {0, 0};
  const hsize_t start[2] = {(hsize_t)n, 0}, count[2] = {1, COLUMNS};
  const hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT);
  const hid_t in_file = H5Dget_space(dataset), in_memory = H5Screate_simple(2, count, NULL);
  H5Sget_simple_extent_dims(in_file, size, NULL);
  Demand(size[0] == (hsize_t)n + 1, "the shape of d");
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL);
  Demand(H5Dread(dataset, H5T_NATIVE_INT, in_memory, in_file, H5P_DEFAULT, values) >= 0, "d");
  for (int i = 0; i < COLUMNS; ++i) Demand(values[i] == n, "a value of d");
  H5Sclose(in_memory);
  H5Sclose(in_file);
  H5Dclose(dataset);
}

static void CheckBig(hid_t file) {
  int64_t* values = malloc(BIG * sizeof *values);
  const hid_t dataset = H5Dopen2(file, "big", H5P_DEFAULT);
  Demand(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "big");
  for (int i = 0; i < BIG; ++i) Demand(values[i] == i, "a value of big");
  H5Dclose(dataset);
  free(values);
}

static void CheckGroups(hid_t file, int n) {
  char name[32];
  H5G_info_t info;
  const int groups = n < 2 ? n + 1 : 3;
  Demand(H5Gget_info(file, &info) >= 0 && info.nlinks == (hsize_t)(3 + groups), "the links");
  for (int i = n - groups + 1; i <= n; ++i) {
    snprintf(name, sizeof name, "group %04d", i);
    Demand(H5Lexists(file, name, H5P_DEFAULT) > 0, name);
  }
}

static int Look(hid_t file) {
  const int n = Attribute(file);
  CheckRow(file, n);
  CheckBig(file);
  CheckGroups(file, n);
  return n;
}

int main(int argc, char** argv) {
  char line[100];
  if (argc != 2) return 2;
  hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  for (;;) {
    Demand(file >= 0, "the open");
    printf("%d\n", Look(file));
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) break;
    if (strncmp(line, "again", 5) == 0) {
      H5Fclose(file);
      file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    }
  }
  H5Fclose(file);
  return 0;
}
