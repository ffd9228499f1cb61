/* A raw extent that the change from one cut to the next does not name, once: preloaded into
 * h5mirror-agent it waits until there is a file $H5MIRROR_TEST_MISSED, and an extent of LONGEST_MIN
 * bytes or more among those that the server says have changed; it removes the file and makes that
 * extent empty. No checksum can tell.
 *
 * It stands before the function of libprotobuf that reads a list of uint64: of a FollowFileResponse
 * the offsets, then the lengths, of what has changed, and the same of metadata that comes with it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* More than all metadata of the file that stamp.py writes. */
#define LONGEST_MIN ((uint64_t)200 << 10)

/* google::protobuf::RepeatedField<uint64_t>, of libprotobuf 3.21. */
struct List {
  int size, capacity;
  uint64_t* values;
};

typedef const char* (*parse_fn)(void*, const char*, void*);

static int IsFollower(void) {
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  return strcmp(name, "h5m-follow") == 0;
}

static void Miss(struct List* lengths) {
  const char* plan = getenv("H5MIRROR_TEST_MISSED");
  if (plan == NULL || access(plan, F_OK) != 0) return;
  uint64_t* longest = NULL;
  for (int i = 0; i < lengths->size; ++i) {
    if (longest == NULL || lengths->values[i] > *longest) longest = &lengths->values[i];
  }
  if (longest != NULL && *longest >= LONGEST_MIN && unlink(plan) == 0) *longest = 0;
}

/* PackedUInt64Parser(void* list, const char* bytes, ParseContext* context) */
const char* _ZN6google8protobuf8internal18PackedUInt64ParserEPvPKcPNS1_12ParseContextE(
    void* list, const char* bytes, void* context) {
  static parse_fn next;
  static __thread unsigned lists_read;
  if (next == NULL) {
    next = (parse_fn)dlsym(
        RTLD_NEXT, "_ZN6google8protobuf8internal18PackedUInt64ParserEPvPKcPNS1_12ParseContextE");
  }
  const char* end = next(list, bytes, context);
  if (IsFollower() && ++lists_read % 2 == 0 && end != NULL) Miss(list);
  return end;
}
