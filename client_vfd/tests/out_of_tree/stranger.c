/* Uses every function of H5FDh5mirror.h once.
 *
 * usage: stranger FILE SERVER EXPECTED_STATE
 * EXPECTED_STATE is "behind" (no server there) or "mirroring". */
#include <H5FDh5mirror.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "stranger.c:%d: failed: %s\n", __LINE__, #condition); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

static void write_number(hid_t file, const char* name, int number) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &number) >= 0);
  H5Dclose(set);
  H5Sclose(space);
}

int main(int argc, char** argv) {
  H5FDh5mirror_config_t config = H5FD_H5MIRROR_CONFIG_DEFAULT;
  H5FDh5mirror_status_t status;
  int* fd = NULL;
  hid_t fapl, file;
  int mirroring;

  CHECK(argc == 4);
  mirroring = strcmp(argv[3], "mirroring") == 0;
  config.server = argv[2];
  config.name = "stranger.h5";
  config.more = "timeout=2s";
  fapl = H5Pcreate(H5P_FILE_ACCESS);
  CHECK(H5Pset_fapl_h5mirror(fapl, &config) >= 0);
  file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  CHECK(file >= 0);

  /* Ordinary callers get the file descriptor, as from sec2. */
  CHECK(H5Fget_vfd_handle(file, H5P_DEFAULT, (void**)&fd) >= 0 && *fd > 2);

  write_number(file, "first", 1);
  CHECK(H5FDh5mirror_tick(file) >= 0);
  write_number(file, "second", 2);
  CHECK(H5FDh5mirror_commit(file, "two numbers") == (mirroring ? 0 : 1));
  CHECK(H5FDh5mirror_status(file, &status) >= 0);
  printf("state %d, cut %lld, version %lld, message '%s'\n", (int)status.state,
         (long long)status.cut, (long long)status.version, status.message);
  CHECK(status.state == (mirroring ? H5FD_H5MIRROR_MIRRORING : H5FD_H5MIRROR_BEHIND));
  CHECK(!mirroring || status.version == 1);
  CHECK(H5Fclose(file) >= 0);

  /* Another driver's files have no mirror. */
  file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  CHECK(file >= 0);
  CHECK(H5FDh5mirror_commit(file, NULL) < 0);
  CHECK(H5FDh5mirror_status(file, &status) < 0);
  CHECK(H5Fclose(file) >= 0);

  /* A wrong key is an error that names it, at the open. */
  config.more = "sever=x";
  CHECK(H5Pset_fapl_h5mirror(fapl, &config) >= 0);
  H5E_BEGIN_TRY { file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl); }
  H5E_END_TRY
  CHECK(file < 0);
  config.name = "a;b";
  CHECK(H5Pset_fapl_h5mirror(fapl, &config) < 0);
  H5Pclose(fapl);
  puts("stranger: all good");
  return 0;
}
