/* The border between the thin plugin (loaded into every HDF5 program that names the driver) and
 * the session module (gRPC, loaded at the first write that really changes a mirrored file, and at
 * the first open of a reader).
 *
 * Plain C types, as the two are built with different run-time libraries. No function throws. A
 * function that waits for a server has a deadline. A session's functions are called by one thread
 * at a time; those of different sessions may run at once. */
#ifndef H5MIRROR_CLIENT_VFD_API_SESSION_API_H_
#define H5MIRROR_CLIENT_VFD_API_SESSION_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plugin and module must come from one build: another number is refused. */
#define H5M_SESSION_ABI 15u
#define H5M_SESSION_SYMBOL "h5mirror_session_api"
/* Below the plugin's own directory: HDF5 loads every lib*.so in that one while it looks. */
#define H5M_SESSION_LIBRARY "h5mirror/libh5mirror_session.so"

enum H5mIntent {
  H5M_EXISTING = 0, /* the file had content when it was opened */
  H5M_CREATED = 1,  /* this open created or emptied it */
  /* mode=remote: there is no local file. `fd` is a spool without a name: it has the bytes that were
   * written since the open, at their places, and holes elsewhere. */
  H5M_REMOTE_CHANGE = 2, /* changes of the file as it was at `base_cut` */
  H5M_REMOTE_NEW = 3,    /* a file that must not exist yet */
  H5M_REMOTE_REPLACE = 4 /* an empty file in the place of any file there */
};

enum H5mBarrier {
  H5M_TICK = 1,
  H5M_SYNC = 2,
  H5M_COMMIT = 3,
  H5M_TICK_IF_CHANGED = 4 /* a tick; none where the newest cut has all that was written */
};

/* The class of a write, as HDF5 types it; a hint. */
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

/* An event of a session. Strings live during the call. */
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
  /* Nonzero: a change that a program without the driver has made becomes a version first, where
   * nothing speaks against it. The caller holds the file's lock. */
  int adopts_outside_change;
  /* Nonzero: what this open changed before the attach is in the file, which is consistent now. */
  int is_written;
  /* Nonzero: other processes may bring parts of its cuts (part_ticket). */
  int takes_parts;
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
  uint32_t linger_ms;                  /* how long a close may go on while data flows */
  uint32_t outage_wait_ms;             /* how long barriers wait for a server that is away */
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

/* The cut of a family, split or multi file that a member's cut belongs to; see GroupCut of
 * types.proto. Lives during the call. */
typedef struct H5mGroupCut {
  uint8_t id[16];
  uint64_t number;
  uint64_t whole_number;
  int64_t time_ns; /* of the cut: Unix time, the same for all members */
  const char* const* members;
  size_t member_count;
} H5mGroupCut;

/* [offset, offset + length_bytes) of a file. */
typedef struct H5mRange {
  uint64_t offset;
  uint64_t length_bytes;
} H5mRange;

/* The right to bring parts of the next cut of a session; see JoinSession of mirror.proto. Secret.
 * Other processes get it as it is. */
typedef struct H5mPartTicket {
  uint8_t session_id[16];
  uint8_t join_secret[16];
  uint64_t token;
  uint64_t after_cuts;
} H5mPartTicket;

/* A part of a cut, to be sent. Strings and arrays live during the call. */
typedef struct H5mPart {
  int fd;             /* of the local file, which nobody changes meanwhile */
  const char* name;   /* under the server's root */
  const char* server; /* "" : from the client's own configuration; as for ca and token */
  const char* ca;
  const char* token;
  enum H5mChecksum checksum;
  uint32_t timeout_ms;
  H5mPartTicket ticket;
  const H5mRange* ranges; /* in order, apart */
  size_t range_count;
} H5mPart;

typedef struct H5mStatus {
  enum H5mState state;
  int64_t cut;     /* the newest cut that the server confirmed */
  int64_t version; /* the newest version that the server made */
  uint64_t pending_bytes;
  int64_t behind_since_ns; /* Unix time, for people; 0: not behind */
  char message[256];
  int64_t behind_for_ns; /* the time since then, whatever the clock was set to; 0: not behind */
  uint64_t group_number; /* of the newest cut of its group that is durable on the server; 0: none */
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
  int linked; /* nonzero: opened through a link or a virtual dataset; `version` is not used */
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
  int targets_live;    /* `live` for those files */
  uint8_t root_id[16]; /* `root_id` for those files */
  /* Of a cut that a session of a writer made: its id; else zeros. */
  uint8_t writer_session_id[16];
  int is_swmr;         /* nonzero: at this cut or version an SWMR writer had the file open */
  char text[512];      /* for people: the file, its version and the time in UTC */
  char identity[4608]; /* equal for two readers of the same bytes */
  int error_number;    /* of an open that failed: an errno value */
} H5mReaderInfo;

/* A wait for the next cut of a file. */
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
  /* Null: it failed, and `error` says why. Waits for the server only where an outside change is
   * taken in, at most `timeout_ms` without an answer, or 5 s, for each of two steps. */
  H5mSession* (*attach)(const H5mAttach* attach, char* error, size_t error_size);
  /* For mode=remote, before the first write: waits until the server has taken the session. 0, or an
   * errno value and the reason in `error`; then the session can only be closed. */
  int (*await_opened)(H5mSession*, char* error, size_t error_size);
  /* Around every local write. `before` copies out the bytes that a closed cut still needs. */
  void (*before_write)(H5mSession*, uint64_t offset, uint64_t length);
  void (*after_write)(H5mSession*, uint64_t offset, uint64_t length,
                      enum H5mWriteClass write_class);
  /* Around a change of size to `size_bytes`. */
  void (*before_truncate)(H5mSession*, uint64_t size_bytes);
  void (*after_truncate)(H5mSession*, uint64_t size_bytes);
  /* A wait has two steps, so that a file's mirrors are waited for at once: the caller takes the
   * first step with all sessions, then the second with each. The deadline counts from the first. */
  /* First step: ends a cut. */
  void (*cut)(H5mSession*, enum H5mBarrier kind, enum H5mAck ack, const char* comment);
  /* Second step: waits as its `ack` says. 0: acknowledged as asked; else the mirror is behind. */
  int (*await_cut)(H5mSession*);
  /* Before cut() and seal(): what the next cuts belong to; null: to nothing. */
  void (*set_group)(H5mSession*, const H5mGroupCut* group);
  /* For a local file that others write too, and tell this program of it: returns when no closed cut
   * needs the file's present bytes any more. They are sent, or copied; else the cut is given up. */
  void (*detach_cuts)(H5mSession*);
  /* The next two are for a cut whose bytes several processes send, of a file that nobody changes
   * until detach_cuts() or await_sealed() has returned. First: returns when the server has all cuts
   * before this one, at most as long as detach_cuts(). 0: `ticket` holds. Else: no parts now. */
  int (*part_ticket)(H5mSession*, H5mPartTicket* ticket);
  /* Second: a part of `ticket` is over; `is_sent` nonzero: the server has all of it. 0: it is of
   * the next cut. Else it failed, or the session has another stream by now, and after_write() must
   * name the ranges. */
  int (*end_part)(H5mSession*, const H5mPartTicket* ticket, const H5mRange* ranges,
                  size_t range_count, int is_sent);
  /* Sends a part, for a session of another process. 0: the server has all of it. Else an errno
   * value and the reason in `error`; the session must send it then. Nothing of the file is read
   * after it has returned. Waits at most 5 s, or `timeout_ms` if that is longer, for each frame. */
  int (*send_part)(const H5mPart* part, char* error, size_t error_size);
  /* A clean close, while the local file is still locked. First step: ends the last cut. */
  void (*seal)(H5mSession*);
  /* Second step: returns when all its bytes were handed over, or the timeout has passed. */
  void (*await_sealed)(H5mSession*);
  /* The end of a session, sealed or not. First step: the time to wait begins. */
  void (*begin_close)(H5mSession*);
  /* Second step: ends the session. After seal() it waits for the commit as configured; without
   * seal() it makes no cut. The pointer is dead afterwards. 0: acknowledged as configured. Else
   * `error` says why not; in mode=remote the bytes are lost then. */
  int (*close)(H5mSession*, char* error, size_t error_size);
  void (*status)(H5mSession*, H5mStatus* status);
  /* For a forked child that wrote to the file. Touches shared memory only. */
  void (*child_wrote)(H5mSession*);
  /* Waits until closed sessions have finished, at most as long as their timeouts, and stops the
   * module's thread when no session is open. The next attach starts it again. */
  void (*drain)(void);
  /* Finds a version or cut and opens it for reading. Null: it failed, and `error` says why. */
  H5mReader* (*reader_open)(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                            size_t error_size);
  /* Fills `out`; beyond the end with zeros. 0, or an errno value and the reason in `error`. Waits
   * at most `timeout_ms` without an answer. */
  int (*reader_read)(H5mReader*, uint64_t offset, void* out, size_t size, int raw, char* error,
                     size_t error_size);
  void (*reader_close)(H5mReader*);
  /* 0: `cut` is the newest one, newer than `after_cut`. ETIMEDOUT: `cut` is the newest one, or 0.
   * Else an errno value, and the reason in `error`. */
  int (*wait_for_cut)(const H5mWait* wait, int64_t* cut, char* error, size_t error_size);
} H5mSessionApi;

typedef const H5mSessionApi* (*H5mGetSessionApi)(void);

#ifdef __cplusplus
}
#endif

#endif /* H5MIRROR_CLIENT_VFD_API_SESSION_API_H_ */
