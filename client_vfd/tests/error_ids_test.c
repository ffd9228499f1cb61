/* A program that names ids of HDF5's errors has copies of them, made by the loader, and the
 * library fills in the program's. The driver's errors must be whole there too. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "error_ids_test.c:%d: failed: %s\n", __LINE__, #condition); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

typedef struct {
  H5E_error2_t error;
  char text[1024];
} Deepest;

static herr_t keep_first(unsigned n, const H5E_error2_t* error, void* deepest) {
  Deepest* kept = deepest;
  if (n != 0) return 0;
  kept->error = *error;
  snprintf(kept->text, sizeof kept->text, "%s", error->desc != NULL ? error->desc : "");
  return 0;
}

int main(void) {
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  Deepest deepest;
  memset(&deepest, 0, sizeof deepest);
  CHECK(H5Pset_driver_by_name(fapl, "h5mirror", "sever=a") >= 0);
  CHECK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0);
  CHECK(H5Fopen("/no/such/file.h5", H5F_ACC_RDONLY, fapl) < 0);
  /* Upward begins at the deepest error. */
  CHECK(H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &deepest) >= 0);
  fprintf(stderr, "%s\n", deepest.text);
  CHECK(strstr(deepest.text, "unknown key 'sever'") != NULL);
  CHECK(deepest.error.cls_id == H5E_ERR_CLS);
  CHECK(deepest.error.maj_num == H5E_FILE);
  CHECK(deepest.error.min_num == H5E_CANTOPENFILE);
  CHECK(H5E_VFL > 0 && H5E_READERROR > 0 && H5E_WRITEERROR > 0);
  CHECK(H5Pclose(fapl) >= 0);
  return 0;
}
