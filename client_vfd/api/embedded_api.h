/* The border between the thin plugin and the embedded store, a module that is loaded at the first
 * open with server=embedded that needs it. As session_api.h: plain C types, no function throws.
 *
 * A function that can fail returns 0, or an errno value and the reason in `error`. A file's
 * functions are called by one thread at a time; those of different files may run at once. */
#ifndef H5MIRROR_CLIENT_VFD_API_EMBEDDED_API_H_
#define H5MIRROR_CLIENT_VFD_API_EMBEDDED_API_H_

#include <stddef.h>
#include <stdint.h>

#include "client_vfd/api/session_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define H5M_EMBEDDED_ABI 4u
#define H5M_EMBEDDED_SYMBOL "h5mirror_embedded_api"
/* Below the plugin's own directory, as the session module is. */
#define H5M_EMBEDDED_LIBRARY "h5mirror/libh5mirror_embedded.so"

/* One file that this process writes with server=embedded. */
typedef struct H5mEmbedded H5mEmbedded;

typedef struct H5mEmbeddedOpen {
  const char* path;      /* absolute, no symlinks */
  const void* host;      /* the HDF5 library of the open: two libraries never share a file */
  enum H5mIntent intent; /* H5M_CREATED: a former file becomes history at the first cut */
  int lock_head;         /* nonzero: flock(2) the head too, as sec2 does */
  uint32_t mode_bits;    /* of a head that is made */
  uint32_t timeout_ms;
  uint32_t page_size_bytes;         /* of a history that is made; 0: the default */
  uint32_t version_every_ms;        /* 0: flushes make no versions */
  uint32_t version_min_interval_ms; /* 0: every close makes one */
  const char* program;
  /* Called within the functions below, by their thread. */
  void (*notify)(void* context, const H5mEvent* event);
  /* Called once, at the end of a file that was opened. */
  void (*release)(void* context);
  void* context;
} H5mEmbeddedOpen;

typedef struct H5mEmbeddedApi {
  uint32_t abi;
  uint32_t size; /* of this struct */
  /* Null: it failed. Writes nothing that stays: the first change makes a store. */
  H5mEmbedded* (*open)(const H5mEmbeddedOpen* open, int* error_number, char* error,
                       size_t error_size);
  /* The same file once more, if `host` has it open in this process; else null. Each open needs its
   * own close. */
  H5mEmbedded* (*share)(const char* path, const void* host);
  uint64_t (*size_bytes)(H5mEmbedded*);
  int (*read)(H5mEmbedded*, uint64_t offset, void* out, size_t size, char* error,
              size_t error_size);
  int (*write)(H5mEmbedded*, uint64_t offset, const void* bytes, size_t size, char* error,
               size_t error_size);
  int (*truncate)(H5mEmbedded*, uint64_t size_bytes, char* error, size_t error_size);
  /* Ends a cut, and waits as `ack` says, at most the timeout. `*acknowledged`: nonzero, if the ack
   * came. */
  int (*barrier)(H5mEmbedded*, enum H5mBarrier kind, enum H5mAck ack, const char* comment,
                 int* acknowledged, char* error, size_t error_size);
  /* The last close of a shared file ends it: with a commit if `clean` was nonzero in all closes,
   * else the writes after the last cut are dropped. The pointer is dead afterwards. */
  int (*close)(H5mEmbedded*, int clean, const char* comment, char* error, size_t error_size);
  void (*status)(H5mEmbedded*, H5mStatus* status);
  /* Brings the head of a file without a writer to its newest durable cut, after a crash.
   * ENOENT: there is no history. */
  int (*heal)(const char* path, const char* program, uint32_t timeout_ms,
              void (*notify)(void* context, const H5mEvent* event), void* context, char* error,
              size_t error_size);
  /* As in session_api.h; the name is the file's path. */
  H5mReader* (*reader_open)(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                            size_t error_size);
  int (*reader_read)(H5mReader*, uint64_t offset, void* out, size_t size, int raw, char* error,
                     size_t error_size);
  void (*reader_close)(H5mReader*);
} H5mEmbeddedApi;

typedef const H5mEmbeddedApi* (*H5mGetEmbeddedApi)(void);

#ifdef __cplusplus
}
#endif

#endif /* H5MIRROR_CLIENT_VFD_API_EMBEDDED_API_H_ */
