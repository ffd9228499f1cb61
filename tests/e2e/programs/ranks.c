/* A program of several ranks, as users write them: nothing in it knows of h5mirror unless a
 * driver's configuration is given.
 *
 *   ranks COLUMNS [CONFIG]
 *
 * Rank 0 reads commands from its standard input, a line each; all ranks obey, and rank 0 answers
 * "done" or "failed":
 *
 *   new FILE, open FILE   one after the other; up to four files are open at once
 *   step                  of all open files: rows are added to "rows" and "columns" is overwritten,
 *                         collectively; the attribute "step" counts
 *   own                   the same, each rank by itself
 *   seen                  the same, with HDF5's selection I/O off
 *   blocks N              "blocks" is N everywhere; each rank writes 2 MiB of its own, collectively
 *   zip NAME              a dataset with a filter, written collectively
 *   link FILE             the first open file leads to another one, as its group "away"
 *   through               each opens that group, and writes an attribute of the other file
 *   flush, close          all open files
 *   kill RANK             that rank is gone
 *   part                  from now on the last rank opens no file
 */
#include <hdf5.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 4 /* of a rank in a step */
#define FILES 4
#define BLOCK (1 << 19) /* elements of a rank */
#define LINE 512

static int rank, ranks, columns;
static MPI_Comm together;
static const char* config;
static hid_t files[FILES];
static int file_count;

static hid_t Access(void) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(list, together, MPI_INFO_NULL);
  H5Pset_all_coll_metadata_ops(list, 1);
  H5Pset_coll_metadata_write(list, 1);
  if (config != NULL && H5Pset_driver_by_name(list, "h5mirror", config) < 0) return -1;
  return list;
}

static int Keep(hid_t list, hid_t file) {
  H5Pclose(list);
  if (file >= 0) files[file_count++] = file;
  return file < 0;
}

static int MakeTable(hid_t file, const char* name, hsize_t rows, int grows, int is_zipped) {
  hsize_t size[2] = {rows, (hsize_t)columns};
  const hsize_t most[2] = {H5S_UNLIMITED, (hsize_t)columns}, chunk[2] = {ROWS, (hsize_t)columns};
  hid_t space = H5Screate_simple(2, size, grows ? most : NULL);
  hid_t create = H5Pcreate(H5P_DATASET_CREATE);
  if (grows || is_zipped) H5Pset_chunk(create, 2, chunk);
  if (is_zipped) H5Pset_deflate(create, 1);
  hid_t table = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, create, H5P_DEFAULT);
  H5Pclose(create);
  H5Sclose(space);
  return table < 0 || H5Dclose(table) < 0;
}

static int New(const char* name) {
  hid_t list = Access();
  if (list < 0 || Keep(list, H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, list))) return 1;
  hid_t file = files[file_count - 1], scalar = H5Screate(H5S_SCALAR);
  hid_t step = H5Acreate2(file, "step", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
  const int zero = 0;
  int failed = H5Awrite(step, H5T_NATIVE_INT, &zero) < 0;
  H5Aclose(step);
  H5Sclose(scalar);
  return failed | MakeTable(file, "rows", 0, 1, 0) | MakeTable(file, "columns", 64, 0, 0);
}

static int Open(const char* name) {
  hid_t list = Access();
  return list < 0 || Keep(list, H5Fopen(name, H5F_ACC_RDWR, list));
}

/* Writes `value` into this rank's part of a table: `rows` rows from `row` on, each `stride`-th
 * column. */
static int WritePart(hid_t file, const char* name, const hsize_t start[2], const hsize_t stride[2],
                     const hsize_t count[2], int value, hid_t transfer) {
  hid_t table = H5Dopen2(file, name, H5P_DEFAULT);
  hid_t in_file = H5Dget_space(table), in_memory = H5Screate_simple(2, count, NULL);
  int* values = malloc((size_t)(count[0] * count[1]) * sizeof *values);
  for (hsize_t i = 0; i < count[0] * count[1]; ++i) values[i] = value;
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, stride, count, NULL);
  int failed = H5Dwrite(table, H5T_NATIVE_INT, in_memory, in_file, transfer, values) < 0;
  free(values);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  return failed | (H5Dclose(table) < 0);
}

static int WriteRows(hid_t file, const char* name, hsize_t first, int value, hid_t transfer) {
  int my_rank;
  MPI_Comm_rank(together, &my_rank);
  const hsize_t start[2] = {first + (hsize_t)my_rank * ROWS, 0}, stride[2] = {1, 1};
  const hsize_t count[2] = {ROWS, (hsize_t)columns};
  return WritePart(file, name, start, stride, count, value, transfer);
}

static int Step(hid_t file, hid_t transfer) {
  int step = 0, size, my_rank;
  MPI_Comm_size(together, &size);
  MPI_Comm_rank(together, &my_rank);
  hid_t counter = H5Aopen(file, "step", H5P_DEFAULT);
  if (counter < 0 || H5Aread(counter, H5T_NATIVE_INT, &step) < 0) return 1;
  const hsize_t before = (hsize_t)(step * size * ROWS);
  const hsize_t after[2] = {before + (hsize_t)(size * ROWS), (hsize_t)columns};
  step += 1;
  hid_t rows = H5Dopen2(file, "rows", H5P_DEFAULT);
  int failed = H5Dset_extent(rows, after) < 0;
  H5Dclose(rows);
  failed |= WriteRows(file, "rows", before, step, transfer);
  const hsize_t start[2] = {0, (hsize_t)my_rank}, stride[2] = {1, (hsize_t)size};
  const hsize_t count[2] = {64, (hsize_t)(columns / size)};
  failed |= WritePart(file, "columns", start, stride, count, step, transfer);
  failed |= H5Awrite(counter, H5T_NATIVE_INT, &step) < 0;
  return failed | (H5Aclose(counter) < 0);
}

static int StepAll(H5FD_mpio_xfer_t how, H5D_selection_io_mode_t selection_io) {
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, how);
  H5Pset_selection_io(transfer, selection_io);
  int failed = 0;
  for (int i = 0; i < file_count; ++i) failed |= Step(files[i], transfer);
  H5Pclose(transfer);
  return failed;
}

static int Blocks(hid_t file, int value) {
  int size, my_rank;
  MPI_Comm_size(together, &size);
  MPI_Comm_rank(together, &my_rank);
  const hsize_t all[2] = {(hsize_t)size, BLOCK};
  if (H5Lexists(file, "blocks", H5P_DEFAULT) == 0) {
    hid_t space = H5Screate_simple(2, all, NULL);
    H5Dclose(
        H5Dcreate2(file, "blocks", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  }
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  const hsize_t start[2] = {(hsize_t)my_rank, 0}, stride[2] = {1, 1}, count[2] = {1, BLOCK};
  const int failed = WritePart(file, "blocks", start, stride, count, value, transfer);
  H5Pclose(transfer);
  return failed;
}

static int BlocksOfAll(int value) {
  int failed = 0;
  for (int i = 0; i < file_count; ++i) failed |= Blocks(files[i], value);
  return failed;
}

static int Zip(const char* name) {
  int size;
  MPI_Comm_size(together, &size);
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  int failed = MakeTable(files[0], name, (hsize_t)(size * ROWS), 0, 1);
  failed |= WriteRows(files[0], name, 0, 7, transfer);
  H5Pclose(transfer);
  return failed;
}

static int Link(const char* name) {
  return H5Lcreate_external(name, "/", files[0], "away", H5P_DEFAULT, H5P_DEFAULT) < 0;
}

static int Through(void) {
  hid_t group = H5Gopen2(files[0], "away", H5P_DEFAULT);
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(group, "through", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  const int failed = H5Awrite(attribute, H5T_NATIVE_INT, &ranks) < 0;
  H5Aclose(attribute);
  H5Sclose(space);
  return H5Gclose(group) < 0 || failed;
}

static int FlushAll(void) {
  int failed = 0;
  for (int i = 0; i < file_count; ++i) failed |= H5Fflush(files[i], H5F_SCOPE_GLOBAL) < 0;
  return failed;
}

static int CloseAll(void) {
  int failed = 0;
  while (file_count > 0) failed |= H5Fclose(files[--file_count]) < 0;
  return failed;
}

static int Part(void) {
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, rank + 1 < ranks ? 0 : MPI_UNDEFINED, rank, &part);
  together = part;
  return 0;
}

static int Obey(const char* word, const char* rest) {
  if (strcmp(word, "kill") == 0) {
    if (atoi(rest) == rank) kill(getpid(), SIGKILL);
    return 0;
  }
  if (strcmp(word, "part") == 0) return Part();
  if (together == MPI_COMM_NULL) return 0;
  if (strcmp(word, "new") == 0) return New(rest);
  if (strcmp(word, "open") == 0) return Open(rest);
  if (strcmp(word, "step") == 0) {
    return StepAll(H5FD_MPIO_COLLECTIVE, H5D_SELECTION_IO_MODE_DEFAULT);
  }
  if (strcmp(word, "own") == 0) {
    return StepAll(H5FD_MPIO_INDEPENDENT, H5D_SELECTION_IO_MODE_DEFAULT);
  }
  if (strcmp(word, "seen") == 0) return StepAll(H5FD_MPIO_COLLECTIVE, H5D_SELECTION_IO_MODE_OFF);
  if (strcmp(word, "blocks") == 0) return BlocksOfAll(atoi(rest));
  if (strcmp(word, "zip") == 0) return Zip(rest);
  if (strcmp(word, "link") == 0) return Link(rest);
  if (strcmp(word, "through") == 0) return Through();
  if (strcmp(word, "flush") == 0) return FlushAll();
  if (strcmp(word, "close") == 0) return CloseAll();
  return 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  together = MPI_COMM_WORLD;
  columns = argc > 1 ? atoi(argv[1]) : 512;
  config = argc > 2 ? argv[2] : NULL;
  char line[LINE];
  while (1) {
    if (rank == 0 && fgets(line, sizeof line, stdin) == NULL) line[0] = '\0';
    MPI_Bcast(line, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (line[0] == '\0') break;
    line[strcspn(line, "\n")] = '\0';
    char* rest = strchr(line, ' ');
    if (rest != NULL) *rest++ = '\0';
    const int failed = Obey(line, rest != NULL ? rest : "");
    int any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
      if (any != 0 && any != ranks) {
        printf("failed on %d of %d\n", any, ranks);
      } else {
        printf("%s\n", any != 0 ? "failed" : "done");
      }
      fflush(stdout);
    }
  }
  CloseAll();
  MPI_Finalize();
  return 0;
}
