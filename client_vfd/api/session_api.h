/* The border between the thin plugin (loaded into every HDF5 program that names the driver) and
 * the session module (gRPC, loaded at the first write that really changes a mirrored file, and at
 * the first open of a reader).
 *
 * Plain C types: the two are built with different run-time libraries. No function throws, and none
 * blocks in the network: those that wait have a deadline. A session's functions are called by one
 * thread at a time; different sessions' may run at once. */
#ifndef H5MIRROR_CLIENT_VFD_API_SESSION_API_H_
#define H5MIRROR_CLIENT_VFD_API_SESSION_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plugin and module come from one build; anything else is refused. */
#define H5M_SESSION_ABI 11u
#define H5M_SESSION_SYMBOL "h5mirror_session_api"
/* Below the plugin's own directory: HDF5 loads every lib*.so in that one while it looks. */
#define H5M_SESSION_LIBRARY "h5mirror/libh5mirror_session.so"

enum H5mIntent {
  H5M_EXISTING = 0, /* the file had content when it was opened */
  H5M_CREATED = 1,  /* this open created or emptied it */
  /* mode=remote: there is no local file. `fd` is a spool, which nobody else sees and which holds
   * what was written since the open, at its place; elsewhere it is empty. */
  H5M_REMOTE_CHANGE = 2, /* of the file as it was at `base_cut` */
  H5M_REMOTE_NEW = 3,    /* of a file that must not be there */
  H5M_REMOTE_REPLACE = 4 /* of an empty one in the place of whatever is there */
};

enum H5mBarrier { H5M_TICK = 1, H5M_SYNC = 2, H5M_COMMIT = 3 };

/* What a write is for, as HDF5 types it; a hint. */
enum H5mWriteClass { H5M_WRITE_RAW = 0, H5M_WRITE_METADATA = 1 };

enum H5mAck { H5M_ACK_NONE = 0, H5M_ACK_APPLIED = 1, H5M_ACK_DURABLE = 2 };

enum H5mChecksum { H5M_CHECKSUM_AUTO = 0, H5M_CHECKSUM_ON = 1, H5M_CHECKSUM_OFF = 2 };

/* As H5FDh5mirror_state_t of H5FDh5mirror.h. */
enum H5mState {
  H5M_STATE_OFF = 0,
  H5M_STATE_UNCHANGED = 1,
  H5M_STATE_CONNECTING = 2,
  H5M_STATE_MIRRORING = 3,
  H5M_STATE_BEHIND = 4,
  H5M_STATE_DIVERGED = 5,
  H5M_STATE_CLEAN = 6,
  H5M_STATE_READING = 7,
  H5M_STATE_RESYNCING = 8
};

typedef struct H5mStat {
  uint64_t inode;
  int64_t size_bytes;
  int64_t mtime_ns;
  int64_t ctime_ns;
} H5mStat;

/* What a session says about itself; strings live during the call. */
typedef struct H5mEvent {
  const char* event; /* "attach", "opened", "resynced", "behind", "outside_change", "diverged",
                      "close" */
  enum H5mState state;
  int64_t cut;
  int64_t version;
  const char* detail; /* for people; "" for none */
  int to_user;        /* nonzero: one line on stderr too */
} H5mEvent;

typedef struct H5mAttach {
  int fd;                /* of the local file; the session opens its own from it, now */
  const char* real_path; /* absolute, no symlinks */
  const char* name;      /* under the server's root */
  enum H5mIntent intent;
  int64_t base_cut;     /* of H5M_REMOTE_CHANGE */
  H5mStat stat_at_open; /* before this open changed anything; not in mode=remote */
  /* Nonzero: what a program without the driver has changed becomes a version first, where nothing
   * speaks against it. The caller holds the file's lock, so that nobody else writes it. */
  int adopts_outside_change;
  uint32_t mode_bits;
  const char* server;     /* "" : from the client's own configuration; as for ca and token */
  const char* record_tag; /* in the names of the record and the dirty map; "": the only mirror */
  const char* ca;
  const char* token;
  const char* comment;
  const char* program;
  enum H5mAck ack_tick;
  enum H5mAck ack_commit;
  enum H5mChecksum checksum;
  uint64_t window_bytes;
  uint32_t timeout_ms;
  uint32_t linger_ms;                  /* that a close waits beyond it, where data flows */
  uint32_t outage_wait_ms;             /* that barriers wait for a server that is away */
  uint64_t bandwidth_bytes_per_second; /* 0: no limit */
  uint32_t page_size_bytes;
  uint32_t version_every_ms;        /* 0: flushes make no versions */
  uint32_t version_min_interval_ms; /* 0: every close makes one */
  /* Called from any thread, also after close() until the session is done; never for a forked child.
   */
  void (*notify)(void* context, const H5mEvent* event);
  /* Called once, when `notify` will not be called again. */
  void (*release)(void* context);
  void* context;
} H5mAttach;

typedef struct H5mStatus {
  enum H5mState state;
  int64_t cut;     /* the newest cut that the server confirmed */
  int64_t version; /* the newest version that it made */
  uint64_t pending_bytes;
  int64_t behind_since_ns; /* Unix time, for people; 0: not behind */
  char message[256];
  int64_t behind_for_ns; /* so long, whoever set the clock meanwhile; 0: not behind */
} H5mStatus;

typedef struct H5mSession H5mSession;

/* One version or cut of a file, open in mode=reader. Its functions are called by one thread at a
 * time. */
typedef struct H5mReader H5mReader;

typedef struct H5mReaderOpen {
  const char* name;   /* under the server's root */
  const char* server; /* "" : from the client's own configuration; as for ca and token */
  const char* ca;
  const char* token;
  const char* version; /* as in the configuration; "": the newest cut, where `live` is possible */
  int linked; /* nonzero: opened through a link or a virtual dataset; `version` is not looked at */
  int64_t
      at_ns; /* with `linked`: the newest version at or before this server time; 0: the newest */
  int64_t number;      /* with `linked`: this version, if it is not 0 */
  int live;            /* with `linked`: a cut, not a version, of the time `at_ns` or before */
  int64_t cut;         /* with `live`: this one, if it is not 0 */
  uint8_t root_id[16]; /* with `live`: of the file that led here */
  const char* agent;   /* "auto", "off" or the socket of h5mirror-agent */
  uint64_t cache_bytes;
  uint32_t timeout_ms;
} H5mReaderOpen;

typedef struct H5mReaderInfo {
  int64_t version;
  int64_t cut;
  uint64_t size_bytes;
  /* `at_ns` for the files that this one leads to. */
  int64_t targets_at_ns;
  int targets_live;    /* and `live`, */
  uint8_t root_id[16]; /* and `root_id` */
  char text[512];      /* for people: which version of which file, of what time in UTC */
  char identity[4608]; /* equal for two readers of the same bytes */
  int error_number;    /* when it fails: an errno value that suits */
} H5mReaderInfo;

/* Who waits for the next cut of a file. */
typedef struct H5mWait {
  const char* name;   /* under the server's root */
  const char* server; /* "" : from the client's own configuration; as for ca and token */
  const char* ca;
  const char* token;
  int64_t after_cut;  /* 0: any cut */
  int64_t timeout_ms; /* negative: no limit */
} H5mWait;

typedef struct H5mSessionApi {
  uint32_t abi;
  uint32_t size; /* of this struct */
  /* Null when it fails; `error` then says why. Does not wait for the server. */
  H5mSession* (*attach)(const H5mAttach* attach, char* error, size_t error_size);
  /* For mode=remote, before the first write: waits until the server has taken the session. 0, or an
   * errno value and the reason in `error`; the session can then only be closed. */
  int (*await_opened)(H5mSession*, char* error, size_t error_size);
  /* Around every local write: `before` copies out what a closed cut still needs. */
  void (*before_write)(H5mSession*, uint64_t offset, uint64_t length);
  void (*after_write)(H5mSession*, uint64_t offset, uint64_t length,
                      enum H5mWriteClass write_class);
  /* Around a change of size to `size_bytes`. */
  void (*before_truncate)(H5mSession*, uint64_t size_bytes);
  void (*after_truncate)(H5mSession*, uint64_t size_bytes);
  /* What waits has two steps, so that a file's mirrors are waited for at once: the first one of all
   * of its sessions, then the second one of each. The deadline counts from the first step. */
  /* Ends a cut; */
  void (*cut)(H5mSession*, enum H5mBarrier kind, enum H5mAck ack, const char* comment);
  /* waits as its `ack` says. 0: acknowledged so far; else the mirror is behind. */
  int (*await_cut)(H5mSession*);
  /* Clean close, while the local file is still locked: ends the last cut; */
  void (*seal)(H5mSession*);
  /* returns when all its bytes were read and handed over, or the timeout has passed. */
  void (*await_sealed)(H5mSession*);
  /* Then, whether sealed or not: the time to wait begins; */
  void (*begin_close)(H5mSession*);
  /* the session ends. After seal() it waits for the commit as configured; without, no cut is
   * made. The pointer is dead afterwards. 0: acknowledged as configured. Else `error` says why not;
   * in mode=remote it never will be. */
  int (*close)(H5mSession*, char* error, size_t error_size);
  void (*status)(H5mSession*, H5mStatus* status);
  /* A forked child: it wrote to the file. Touches shared memory only. */
  void (*child_wrote)(H5mSession*);
  /* Waits until closed sessions have finished, at most as long as their timeouts, and stops the
   * module's thread when no session is open. The next attach starts it again. */
  void (*drain)(void);
  /* Finds a version and opens it for reading; null when it fails, and `error` then says why. */
  H5mReader* (*reader_open)(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                            size_t error_size);
  /* Fills `out`; beyond the end with zeros. 0, or an errno value and the reason in `error`. Waits
   * at most `timeout_ms` without an answer. */
  int (*reader_read)(H5mReader*, uint64_t offset, void* out, size_t size, int raw, char* error,
                     size_t error_size);
  void (*reader_close)(H5mReader*);
  /* 0: `cut` is the newest one, newer than `after_cut`; or ETIMEDOUT, with the newest one or 0; or
   * another errno value and the reason in `error`. */
  int (*wait_for_cut)(const H5mWait* wait, int64_t* cut, char* error, size_t error_size);
} H5mSessionApi;

typedef const H5mSessionApi* (*H5mGetSessionApi)(void);

#ifdef __cplusplus
}
#endif

#endif /* H5MIRROR_CLIENT_VFD_API_SESSION_API_H_ */
