/* A child of `h5mirror doctor` and `h5mirror exec` that loads one libhdf5 and tries it: h5mirror
 * itself never loads one, since whatever is wrong with it must not take h5mirror down.
 *
 *   hdf5-probe version LIBHDF5        prints "1.14.5"
 *   hdf5-probe plugin LIBHDF5         loads the driver h5mirror, as HDF5_DRIVER would
 *   hdf5-probe connector LIBHDF5      loads the VOL connector h5mirror
 *   hdf5-probe scratch LIBHDF5 FILE   writes FILE through the environment's driver, reads it back
 *
 * Exits with 0, or 1 and one line on stderr (HDF5 adds its own). No libhdf5 header is needed:
 * the few types below are the same in 1.10 up to 2.x (H5Ipublic.h, H5public.h). */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t hid_type;         /* hid_t */
typedef unsigned long long hsize; /* hsize_t */

enum { kCount = 1024, kTruncate = 2, kReadOnly = 0 };

static void* library;

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

/* POSIX wants dlsym's pointer to be usable as a function; ISO C has no cast for it. */
static void find(const char* name, void* function) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "the library has no %s\n", name);
    exit(1);
  }
  memcpy(function, &symbol, sizeof(symbol));
}

static int print_version(void) {
  int (*get)(unsigned*, unsigned*, unsigned*);
  unsigned major = 0, minor = 0, release = 0;
  find("H5get_libversion", &get);
  if (get(&major, &minor, &release) < 0) return fail("H5get_libversion failed");
  printf("%u.%u.%u\n", major, minor, release);
  return 0;
}

static int load_plugin(void) {
  int (*is_registered)(const char*);
  int (*open_library)(void);
  find("H5open", &open_library);
  find("H5FDis_driver_registered_by_name", &is_registered);
  if (open_library() < 0) return fail("H5open failed");
  return is_registered("h5mirror") > 0 ? 0 : fail("the driver h5mirror was not loaded");
}

static int load_connector(void) {
  hid_type (*register_connector)(const char*, hid_type);
  int (*open_library)(void);
  find("H5open", &open_library);
  find("H5VLregister_connector_by_name", &register_connector);
  if (open_library() < 0) return fail("H5open failed");
  return register_connector("h5mirror", 0) >= 0 ? 0 : fail("the connector h5mirror was not loaded");
}

static int write_file(const char* path, const int* values) {
  hid_type (*create)(const char*, unsigned, hid_type, hid_type);
  hid_type (*make_space)(int, const hsize*, const hsize*);
  hid_type (*make_set)(hid_type, const char*, hid_type, hid_type, hid_type, hid_type, hid_type);
  int (*write_set)(hid_type, hid_type, hid_type, hid_type, hid_type, const void*);
  int (*close_set)(hid_type), (*close_space)(hid_type), (*close_file)(hid_type);
  const hid_type* native_int;
  find("H5Fcreate", &create);
  find("H5Screate_simple", &make_space);
  find("H5Dcreate2", &make_set);
  find("H5Dwrite", &write_set);
  find("H5Dclose", &close_set);
  find("H5Sclose", &close_space);
  find("H5Fclose", &close_file);
  find("H5T_NATIVE_INT_g", &native_int);
  const hsize count = kCount;
  const hid_type file = create(path, kTruncate, 0, 0);
  if (file < 0) return fail("H5Fcreate failed");
  const hid_type space = make_space(1, &count, NULL);
  const hid_type set = make_set(file, "scratch", *native_int, space, 0, 0, 0);
  if (set < 0) return fail("H5Dcreate2 failed");
  const int wrote = write_set(set, *native_int, 0, 0, 0, values);
  close_set(set);
  close_space(space);
  if (close_file(file) < 0 || wrote < 0) return fail("writing the scratch file failed");
  return 0;
}

static int read_file(const char* path, const int* values) {
  hid_type (*open_file)(const char*, unsigned, hid_type);
  hid_type (*open_set)(hid_type, const char*, hid_type);
  int (*read_set)(hid_type, hid_type, hid_type, hid_type, hid_type, void*);
  int (*close_set)(hid_type), (*close_file)(hid_type);
  const hid_type* native_int;
  static int back[kCount];
  find("H5Fopen", &open_file);
  find("H5Dopen2", &open_set);
  find("H5Dread", &read_set);
  find("H5Dclose", &close_set);
  find("H5Fclose", &close_file);
  find("H5T_NATIVE_INT_g", &native_int);
  const hid_type file = open_file(path, kReadOnly, 0);
  if (file < 0) return fail("H5Fopen failed");
  const hid_type set = open_set(file, "scratch", 0);
  if (set < 0 || read_set(set, *native_int, 0, 0, 0, back) < 0) return fail("H5Dread failed");
  close_set(set);
  close_file(file);
  return memcmp(back, values, sizeof(back)) == 0 ? 0 : fail("the values read back differ");
}

static int scratch(const char* path) {
  int (*open_library)(void);
  static int values[kCount];
  find("H5open", &open_library);
  if (open_library() < 0) return fail("H5open failed");
  for (int i = 0; i < kCount; ++i) values[i] = i * 7919 + 1;
  return write_file(path, values) || read_file(path, values);
}

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: hdf5-probe version|plugin|connector|scratch LIBHDF5 [FILE]");
  library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail(dlerror());
  if (strcmp(argv[1], "version") == 0) return print_version();
  if (strcmp(argv[1], "plugin") == 0) return load_plugin();
  if (strcmp(argv[1], "connector") == 0) return load_connector();
  if (strcmp(argv[1], "scratch") == 0 && argc == 4) return scratch(argv[3]);
  return fail("usage: hdf5-probe version|plugin|connector|scratch LIBHDF5 [FILE]");
}
