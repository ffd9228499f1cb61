// One program of several ranks for `./dev bench parallel`: all write one file, with a flush after
// each quarter.
//
//   bench_parallel PATTERN FILE MIB [CONFIG]
//
// PATTERN: blocks, columns, chunks or objects (below). CONFIG: keys of the driver h5mirror over
// mpio; without it, mpio alone. Rank 0 prints one line of JSON: seconds until the open returned,
// until the last call before the close returned, and until the close returned; all from a common
// start.
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kQuarters = 4, kColumns = 1024, kChunkRows = 64, kObjectValues = 256 };

static int rank, ranks;

// Any error ends all ranks: the time of half a run means nothing.
static void Must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench_parallel: rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static hid_t Transfer(H5FD_mpio_xfer_t mode) {
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  Must(H5Pset_dxpl_mpio(transfer, mode) >= 0, "H5Pset_dxpl_mpio");
  return transfer;
}

static hid_t MakeRows(hid_t file, hsize_t rows, int chunked) {
  const hsize_t size[2] = {rows, kColumns}, chunk[2] = {kChunkRows, kColumns};
  hid_t space = H5Screate_simple(2, size, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
  if (chunked) Must(H5Pset_chunk(create, 2, chunk) >= 0, "H5Pset_chunk");
  hid_t rows_id = H5Dcreate2(file, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, create, H5P_DEFAULT);
  Must(rows_id >= 0, "H5Dcreate2");
  H5Pclose(create);
  H5Sclose(space);
  return rows_id;
}

// Writes `count` rows and columns of `rows_id` from `start`, all ranks at once.
static void Write(hid_t rows_id, const hsize_t start[2], const hsize_t count[2], hid_t transfer,
                  const int* values) {
  hid_t in_file = H5Dget_space(rows_id), in_memory = H5Screate_simple(2, count, NULL);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL);
  Must(H5Dwrite(rows_id, H5T_NATIVE_INT, in_memory, in_file, transfer, values) >= 0, "H5Dwrite");
  H5Sclose(in_memory);
  H5Sclose(in_file);
}

// blocks: each rank writes rows of its own, independently. chunks: the same, collectively, into a
// chunked dataset. columns: each rank writes every row's own part, collectively.
static void WriteRows(hid_t file, const char* pattern, size_t mib) {
  const int by_columns = strcmp(pattern, "columns") == 0;
  const hsize_t rows = mib * (1 << 20) / (kColumns * sizeof(int));
  const hsize_t quarter = rows / kQuarters / (hsize_t)ranks * (hsize_t)ranks;
  hid_t rows_id = MakeRows(file, quarter * kQuarters, strcmp(pattern, "chunks") == 0);
  hid_t transfer =
      Transfer(strcmp(pattern, "blocks") == 0 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE);
  const hsize_t count[2] = {by_columns ? quarter : quarter / (hsize_t)ranks,
                            by_columns ? kColumns / (hsize_t)ranks : kColumns};
  int* values = malloc(count[0] * count[1] * sizeof *values);
  for (hsize_t i = 0; i < count[0] * count[1]; ++i) values[i] = (int)i + rank;
  for (hsize_t n = 0; n < kQuarters; ++n) {
    const hsize_t start[2] = {n * quarter + (by_columns ? 0 : (hsize_t)rank * count[0]),
                              by_columns ? (hsize_t)rank * count[1] : 0};
    Write(rows_id, start, count, transfer, values);
    if (n + 1 < kQuarters) Must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
  }
  free(values);
  H5Pclose(transfer);
  H5Dclose(rows_id);
}

// objects: small datasets that all ranks make, each written by one of them.
static void WriteObjects(hid_t file, size_t count) {
  const hsize_t size = kObjectValues;
  int values[kObjectValues];
  for (int i = 0; i < kObjectValues; ++i) values[i] = i;
  hid_t space = H5Screate_simple(1, &size, NULL);
  for (size_t i = 0; i < count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "object %zu", i);
    hid_t object =
        H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    Must(object >= 0, "H5Dcreate2");
    if ((int)(i % (size_t)ranks) == rank) {
      Must(H5Dwrite(object, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
           "H5Dwrite");
    }
    H5Dclose(object);
    if ((i + 1) % (count / kQuarters) == 0 && i + 1 < count) {
      Must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
    }
  }
  H5Sclose(space);
}

static hid_t Access(const char* config) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  Must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
  if (config != NULL) {
    Must(H5Pset_driver_by_name(access, "h5mirror", config) >= 0, "H5Pset_driver_by_name");
  }
  return access;
}

static double Common(double start) {
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Must(argc == 4 || argc == 5, "the command line");
  const char* pattern = argv[1];
  const size_t mib = strtoul(argv[3], NULL, 10);
  hid_t access = Access(argc == 5 ? argv[4] : NULL);
  const double start = (MPI_Barrier(MPI_COMM_WORLD), MPI_Wtime());
  hid_t file = H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  Must(file >= 0, "H5Fcreate");
  const double open_s = Common(start);
  if (strcmp(pattern, "objects") == 0) {
    WriteObjects(file, mib * 16);
  } else {
    WriteRows(file, pattern, mib);
  }
  const double felt_s = Common(start);
  Must(H5Fclose(file) >= 0, "H5Fclose");
  const double total_s = Common(start);
  if (rank == 0) {
    printf("{\"open_s\": %.6f, \"felt_s\": %.6f, \"total_s\": %.6f}\n", open_s, felt_s, total_s);
  }
  H5Pclose(access);
  MPI_Finalize();
  return 0;
}
