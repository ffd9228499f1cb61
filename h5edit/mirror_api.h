// The border between h5edit, which knows no gRPC, and the module that speaks to servers for it:
// loaded where a file is mirrored, or is to be. Plain C types: the two are built with different
// run-time libraries. Nothing throws; one thread calls.
#ifndef H5MIRROR_H5EDIT_MIRROR_API_H_
#define H5MIRROR_H5EDIT_MIRROR_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* h5edit and module come from one build; anything else is refused. */
#define H5M_EDIT_MIRROR_ABI 1u
#define H5M_EDIT_MIRROR_SYMBOL "h5mirror_edit_mirror_api"
/* Below the plugin's directory. */
#define H5M_EDIT_MIRROR_LIBRARY "h5mirror/libh5mirror_edit.so"

typedef struct H5mEditMirror H5mEditMirror;

typedef struct H5mEditMirrorApi {
  uint32_t abi;
  uint32_t size; /* of this struct */
  /* Before anything is changed: finds the file's mirrors (that on `server`, if it is not ""; else
   * as the records say, with ca, token and on_outage of the driver's configuration `config`), and
   * brings them to the file as it is; a server that has no such file gets it. Nobody else may have
   * the file open for writing. Null: it must not be edited, and `error` says why. Else `error` says
   * which server is away, "" for none. */
  H5mEditMirror* (*open)(const char* path, const char* server, const char* config, char* error,
                         size_t error_size);
  /* What the mirrors lack of the file as it is, as one version, durably. Nobody may change the file
   * meanwhile. `last`: servers that went away since open() are asked once more. 0; else `error`
   * says what is missing, which is noted beside the file: the next session brings it. */
  int (*commit)(H5mEditMirror*, const char* comment, int last, char* error, size_t error_size);
  /* Whether it is an error that a mirror is missing something: it was asked for by name, or
   * on_outage=fail. */
  int (*is_required)(const H5mEditMirror*);
  void (*close)(H5mEditMirror*);
} H5mEditMirrorApi;

typedef const H5mEditMirrorApi* (*H5mGetEditMirrorApi)(void);

#ifdef __cplusplus
}
#endif

#endif /* H5MIRROR_H5EDIT_MIRROR_API_H_ */
