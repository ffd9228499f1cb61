// The floor of `./dev bench h5edit`: the nine attributes of its script, made with HDF5 alone.
// bench_attributes FILE [durable]
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int make(hid_t root, const char* name, hid_t type, hid_t memory, int rank,
                const hsize_t* dims, const void* values) {
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t attribute = H5Acreate2(root, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  int failed = attribute < 0 || H5Awrite(attribute, memory, values) < 0;
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  return failed;
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: bench_attributes FILE [durable]\n"), 2;
  const hsize_t six[] = {1, 2, 3}, eight[] = {2, 2, 2};
  const int integers[] = {11, 12, 21, 22, 31, 32};
  const double reals[] = {1, 2, -110, -120, 0.0021, 0.0022, -0.0031, -0.032};
  hid_t file = H5Fopen(argv[1], H5F_ACC_RDWR, H5P_DEFAULT);
  if (file < 0) return 1;
  hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
  int failed = 0;
  for (int i = 0; i < 8; ++i) {
    char name[] = "bench0";
    name[sizeof name - 2] += (char)i;
    failed |= make(root, name, H5T_STD_I32BE, H5T_NATIVE_INT, 3, six, integers);
  }
  failed |= make(root, "bench8", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 3, eight, reals);
  H5Gclose(root);
  failed |= H5Fclose(file) < 0;
  if (argc > 2 && strcmp(argv[2], "durable") == 0) {
    int fd = open(argv[1], O_RDONLY);
    failed |= fd < 0 || fdatasync(fd) != 0;
    if (fd >= 0) close(fd);
  }
  return failed;
}
