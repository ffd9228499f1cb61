/* Several threads write one file, each a dataset of its own, and never flush. For an HDF5 that is
 * built for threads.
 *
 *   threads FILE THREADS ROWS
 *
 * Thread T extends "dT" row by row; row N has 64 times T * 1000000 + N + 1. Each thread writes at
 * least ROWS rows, and goes on until a line comes in. Prints "writing" when the datasets are there,
 * and the number of all rows after the close. Exits with 0, or 1 and a line on stderr. */
#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kColumns = 64, kThreadsMax = 16 };

typedef struct Writer {
  pthread_t thread;
  hid_t dataset;
  int number;
  int rows_min;
  int rows;
  int failed;
} Writer;

static atomic_int stopped;

static int write_row(const Writer* writer, int row) {
  int values[kColumns];
  const hsize_t size[2] = {(hsize_t)row + 1, kColumns};
  const hsize_t start[2] = {(hsize_t)row, 0};
  const hsize_t count[2] = {1, kColumns};
  for (int i = 0; i < kColumns; ++i) values[i] = writer->number * 1000000 + row + 1;
  if (H5Dset_extent(writer->dataset, size) < 0) return -1;
  const hid_t in_file = H5Dget_space(writer->dataset);
  const hid_t in_memory = H5Screate_simple(2, count, NULL);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL);
  const herr_t wrote =
      H5Dwrite(writer->dataset, H5T_NATIVE_INT, in_memory, in_file, H5P_DEFAULT, values);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  return wrote;
}

static void* write_rows(void* argument) {
  Writer* const writer = argument;
  while (!writer->failed && (writer->rows < writer->rows_min || !stopped)) {
    writer->failed = write_row(writer, writer->rows++) < 0;
    usleep(500);
  }
  return NULL;
}

static hid_t make_dataset(hid_t file, int number) {
  char name[16];
  const hsize_t size[2] = {0, kColumns};
  const hsize_t size_max[2] = {H5S_UNLIMITED, kColumns};
  const hsize_t chunk[2] = {16, kColumns};
  snprintf(name, sizeof(name), "d%d", number);
  const hid_t space = H5Screate_simple(2, size, size_max);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  const hid_t made = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Pclose(list);
  H5Sclose(space);
  return made;
}

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  static Writer writers[kThreadsMax];
  hbool_t is_threadsafe = 0;
  if (argc != 4) return fail("usage: threads FILE THREADS ROWS");
  const int threads = atoi(argv[2]);
  if (threads < 1 || threads > kThreadsMax) return fail("THREADS must be 1 to 16");
  if (H5is_library_threadsafe(&is_threadsafe) < 0 || !is_threadsafe) return fail("not for threads");
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return fail("H5Fcreate failed");
  for (int i = 0; i < threads; ++i) {
    writers[i] = (Writer){.number = i, .rows_min = atoi(argv[3])};
    writers[i].dataset = make_dataset(file, i);
    if (writers[i].dataset < 0) return fail("H5Dcreate2 failed");
  }
  printf("writing\n");
  fflush(stdout);
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&writers[i].thread, NULL, write_rows, &writers[i]) != 0) {
      return fail("pthread_create failed");
    }
  }
  for (int next = getchar(); next != '\n' && next != EOF;) next = getchar();
  stopped = 1;
  int failed = 0, rows = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(writers[i].thread, NULL);
    failed |= writers[i].failed;
    rows += writers[i].rows;
    H5Dclose(writers[i].dataset);
  }
  if (H5Fclose(file) < 0 || failed) return fail("a call failed");
  printf("%d\n", rows);
  return 0;
}
