/* h5mirror for C and C++ programs: choose the driver for a file access property list, and ask an
 * open file for commits, ticks and its state. Header only: nothing of h5mirror is linked. HDF5
 * loads the driver as a plugin: from HDF5_PLUGIN_PATH, its default plugin directory, or the
 * directory that the macro H5MIRROR_PLUGIN_DIR names (find_package and pkg-config define it).
 *
 *   H5FDh5mirror_config_t config = H5FD_H5MIRROR_CONFIG_DEFAULT;
 *   config.server = "node7:7447";
 *   hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
 *   H5Pset_fapl_h5mirror(fapl, &config);
 *   hid_t file = H5Fcreate("run.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
 *   ...
 *   H5FDh5mirror_commit(file, "calibrated");
 *
 * Works with HDF5 >= 1.14. */
#ifndef H5FDh5mirror_H
#define H5FDh5mirror_H

#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every string may be NULL: not set. Keys that have no field go into `more`,
 * "key=value;key=value". Strings must not contain ';'. */
typedef struct H5FDh5mirror_config_t {
  const char* server;  /* HOST[:PORT] or unix:PATH, several mirrors with commas; or "embedded": the
                        * history beside the file */
  const char* root;    /* names are relative to this directory */
  const char* name;    /* the file's name under the server's root */
  const char* ack;     /* "none", "applied" or "durable", for ticks and commits */
  const char* comment; /* of the version that a close makes */
  const char* ca;      /* PEM file */
  const char* token;   /* the token, or @FILE */
  const char* log;     /* file that dated lines are appended to */
  const char* more;
  const char* mode;    /* "mirror", "remote", "reader" or "off" */
  const char* version; /* with mode "reader": "12", "tag:NAME", "latest-3", "2026-11-03T14:00" */
} H5FDh5mirror_config_t;

#define H5FD_H5MIRROR_CONFIG_DEFAULT \
  { NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

typedef enum H5FDh5mirror_state_t {
  H5FD_H5MIRROR_OFF = 0,        /* not mirrored: mode, rules, or it cannot be */
  H5FD_H5MIRROR_UNCHANGED = 1,  /* nothing was changed since the open */
  H5FD_H5MIRROR_CONNECTING = 2, /* the server has not answered yet */
  H5FD_H5MIRROR_MIRRORING = 3,
  H5FD_H5MIRROR_BEHIND = 4,   /* the server is away or busy; the program goes on locally */
  H5FD_H5MIRROR_DIVERGED = 5, /* the user must decide: h5mirror resync --from local|remote */
  H5FD_H5MIRROR_CLEAN = 6,    /* the server has everything, durably */
  H5FD_H5MIRROR_READING = 7,  /* mode=reader: `cut` and `version` are what is read */
  H5FD_H5MIRROR_RESYNCING = 8 /* connected again; brings what the server missed */
} H5FDh5mirror_state_t;

/* The same words as in `h5mirror status`. */
static inline const char* H5FDh5mirror_state_name(H5FDh5mirror_state_t state) {
  switch (state) {
    case H5FD_H5MIRROR_OFF:
      return "off";
    case H5FD_H5MIRROR_UNCHANGED:
      return "unchanged";
    case H5FD_H5MIRROR_CONNECTING:
      return "connecting";
    case H5FD_H5MIRROR_MIRRORING:
      return "connected";
    case H5FD_H5MIRROR_BEHIND:
      return "degraded";
    case H5FD_H5MIRROR_DIVERGED:
      return "diverged";
    case H5FD_H5MIRROR_CLEAN:
      return "in sync";
    case H5FD_H5MIRROR_READING:
      return "reading";
    case H5FD_H5MIRROR_RESYNCING:
      return "resyncing";
  }
  return "unknown";
}

typedef struct H5FDh5mirror_status_t {
  H5FDh5mirror_state_t state;
  int64_t cut;             /* the newest cut that the server confirmed; 0: none yet */
  int64_t version;         /* the newest version that it made; 0: none yet */
  uint64_t pending_bytes;  /* written locally and not yet sent */
  int64_t behind_since_ns; /* Unix time in nanoseconds; 0: not behind */
  char message[256];       /* for people */
} H5FDh5mirror_status_t;

/* Private: what the driver fills in through H5Fget_vfd_handle when the property list passed holds
 * the address of such a struct under H5FD_H5MIRROR_PROPERTY. */
#define H5FD_H5MIRROR_PROPERTY "h5mirror_api"
#define H5FD_H5MIRROR_API_VERSION 4u

typedef struct H5FDh5mirror_api_t {
  unsigned version; /* set by the caller: what it understands and has room for */
  void* file;       /* null: the file was opened by another driver, or by one that is too old */
  void (*arm)(void* file, int commit, const char* comment);
  int (*finish)(void* file);
  void (*status)(void* file, H5FDh5mirror_status_t* status);
  /* From version 2 on. */
  unsigned (*mirror_count)(void* file);
  /* 0; -1: there is no such mirror. Either pointer may be null. `size` is that of `server`. */
  int (*mirror_status)(void* file, unsigned index, H5FDh5mirror_status_t* status, char* server,
                       size_t size);
  /* From version 3 on. Needs no mirror: any file of the driver's will do. */
  int (*wait)(void* file, const char* url, int64_t after_cut, int timeout_ms, int64_t* cut);
  /* From version 4 on. 0: the next flush makes a tick that waits for no answer, and makes none
   * where nothing changed since the newest cut; finish() ends that. 1: a flush would show nothing:
   * the file is not mirrored, or was opened before this process was forked. */
  int (*arm_tick)(void* file);
} H5FDh5mirror_api_t;

/* Appends "key=value;" to a config string; -1 if it does not fit or holds a ';'. */
static inline int H5FDh5mirror__append(char* text, size_t size, const char* key,
                                       const char* value) {
  size_t used = strlen(text);
  int n;
  if (value == NULL) return 0;
  if (strchr(value, ';') != NULL) return -1;
  n = snprintf(text + used, size - used, "%s=%s;", key, value);
  return n < 0 || (size_t)n >= size - used ? -1 : 0;
}

/* Makes h5mirror the driver of `fapl_id`. `config` may be NULL: defaults and the client's
 * configuration files. Negative on failure, with the reason on HDF5's error stack where HDF5
 * could not load the driver. */
static inline herr_t H5Pset_fapl_h5mirror(hid_t fapl_id, const H5FDh5mirror_config_t* config) {
  char text[8192] = "";
  const H5FDh5mirror_config_t none = H5FD_H5MIRROR_CONFIG_DEFAULT;
  if (config == NULL) config = &none;
  if (H5FDh5mirror__append(text, sizeof text, "server", config->server) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "root", config->root) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "name", config->name) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "ack", config->ack) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "comment", config->comment) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "ca", config->ca) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "token", config->token) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "log", config->log) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "mode", config->mode) < 0 ||
      H5FDh5mirror__append(text, sizeof text, "version", config->version) < 0) {
    return -1;
  }
  if (config->more != NULL) {
    if (strlen(text) + strlen(config->more) >= sizeof text) return -1;
    strcat(text, config->more);
  }
#ifdef H5MIRROR_PLUGIN_DIR
  H5PLappend(H5MIRROR_PLUGIN_DIR);
#endif
  return H5Pset_driver_by_name(fapl_id, "h5mirror", text);
}

/* Fills `api` for an open file, as far as `version` has it; negative if another driver opened it.
 */
static inline herr_t H5FDh5mirror__api(hid_t file_id, unsigned version, H5FDh5mirror_api_t* api) {
  void* handle = NULL;
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  herr_t result = -1;
  memset(api, 0, sizeof *api);
  api->version = version;
  if (fapl < 0) return -1;
  H5Pset_multi_type(fapl, H5FD_MEM_SUPER); /* Of a multi file, a member that each one has. */
  if (H5Pinsert2(fapl, H5FD_H5MIRROR_PROPERTY, sizeof api, &api, NULL, NULL, NULL, NULL, NULL,
                 NULL) >= 0 &&
      H5Fget_vfd_handle(file_id, fapl, &handle) >= 0 && api->file != NULL) {
    result = 0;
  }
  H5Pclose(fapl);
  return result;
}

/* Flushes the file and makes a cut of it: a version with `comment` (may be NULL), or a tick.
 * Returns 0 when the server acknowledged as the configuration's `ack` says, 1 when the file was
 * flushed locally and the mirror is off, behind or diverged (see H5FDh5mirror_status), negative
 * when the flush failed or another driver opened the file. */
static inline int H5FDh5mirror__cut(hid_t file_id, int commit, const char* comment) {
  H5FDh5mirror_api_t api;
  herr_t flushed;
  int result;
  if (H5FDh5mirror__api(file_id, 1, &api) < 0) return -1;
  api.arm(api.file, commit, comment == NULL ? "" : comment);
  flushed = H5Fflush(file_id, H5F_SCOPE_GLOBAL);
  result = api.finish(api.file);
  return flushed < 0 ? -1 : result;
}

/* Makes a version now. */
static inline int H5FDh5mirror_commit(hid_t file_id, const char* comment) {
  return H5FDh5mirror__cut(file_id, 1, comment);
}

/* Shows the file's present state to readers. H5Fflush alone does the same. */
static inline int H5FDh5mirror_tick(hid_t file_id) { return H5FDh5mirror__cut(file_id, 0, NULL); }

/* Fills `status`, with several mirrors (`server` is a list) that of the one that is worst off;
 * negative if another driver opened the file. Does not ask the server. */
static inline herr_t H5FDh5mirror_status(hid_t file_id, H5FDh5mirror_status_t* status) {
  H5FDh5mirror_api_t api;
  memset(status, 0, sizeof *status);
  if (H5FDh5mirror__api(file_id, 1, &api) < 0) return -1;
  api.status(api.file, status);
  return 0;
}

/* How many mirrors the file has: as many as `server` lists; 0 where it is not mirrored, as it is
 * open for reading or left out. Negative if another driver opened it, or an older release of this
 * one. */
static inline herr_t H5FDh5mirror_mirror_count(hid_t file_id, unsigned* count) {
  H5FDh5mirror_api_t api;
  *count = 0;
  if (H5FDh5mirror__api(file_id, 2, &api) < 0) return -1;
  *count = api.mirror_count(api.file);
  return 0;
}

/* Fills `status` with that of mirror `index`, from 0 on in the order of `server`; negative if there
 * is none, and as H5FDh5mirror_mirror_count. */
static inline herr_t H5FDh5mirror_mirror_status(hid_t file_id, unsigned index,
                                                H5FDh5mirror_status_t* status) {
  H5FDh5mirror_api_t api;
  memset(status, 0, sizeof *status);
  if (H5FDh5mirror__api(file_id, 2, &api) < 0) return -1;
  return api.mirror_status(api.file, index, status, NULL, 0);
}

/* Copies the server's address as configured, cut off at `size` and always ended by a null; ""
 * where the client's own configuration names it. Negative as H5FDh5mirror_mirror_status. */
static inline herr_t H5FDh5mirror_mirror_server(hid_t file_id, unsigned index, char* server,
                                                size_t size) {
  H5FDh5mirror_api_t api;
  if (H5FDh5mirror__api(file_id, 2, &api) < 0) return -1;
  return api.mirror_status(api.file, index, NULL, server, size);
}

/* Waits until a file on a server has a cut newer than `after_cut` (0: any), at most `timeout_ms`
 * (0: only looks; negative: without a limit). The file is named by a url as in Python:
 * "h5mirror://HOST[:PORT]/NAME", "h5mirror:///NAME" (the server of the client's own configuration)
 * or "h5mirror+unix:///SOCKET?name=NAME". `cut` becomes the newest cut, 0: there is none yet.
 * Returns 0 when it is newer, 1 when the time has passed, negative with the reason on HDF5's error
 * stack: no such file, no connection, no rights, or HDF5 cannot load the driver. Does not hold
 * HDF5's lock while it waits.
 *
 *   for (int64_t cut = 0; H5FDh5mirror_wait(url, cut, -1, &cut) == 0;) Look(cut); */
static inline int H5FDh5mirror_wait(const char* url, int64_t after_cut, int timeout_ms,
                                    int64_t* cut) {
  const H5FDh5mirror_config_t config = {NULL, NULL, NULL, NULL,  NULL, NULL,
                                        NULL, NULL, NULL, "off", NULL};
  H5FDh5mirror_api_t api;
  H5FDh5mirror_api_t* filled = &api;
  H5FD_t* driver;
  void* handle = NULL;
  hid_t errors;
  int result = -1;
  hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  memset(&api, 0, sizeof api);
  api.version = H5FD_H5MIRROR_API_VERSION;
  *cut = 0;
  if (fapl < 0) return -1;
  /* What the driver can do is asked of a file that it has open, and this one is always there. */
  if (H5Pset_fapl_h5mirror(fapl, &config) >= 0 &&
      (driver = H5FDopen("/dev/null", H5F_ACC_RDONLY, fapl, HADDR_UNDEF)) != NULL) {
    if (H5Pinsert2(fapl, H5FD_H5MIRROR_PROPERTY, sizeof filled, &filled, NULL, NULL, NULL, NULL,
                   NULL, NULL) >= 0 &&
        H5FDget_vfd_handle(driver, fapl, &handle) >= 0 && api.wait != NULL) {
      result = api.wait(api.file, url, after_cut, timeout_ms, cut);
    }
    errors = H5Eget_current_stack(); /* Each call empties it. */
    H5FDclose(driver);
  } else {
    errors = H5Eget_current_stack();
  }
  H5Pclose(fapl);
  if (result < 0) {
    H5Eset_current_stack(errors);
  } else {
    H5Eclose_stack(errors);
  }
  return result;
}

#ifdef __cplusplus
}
#endif

#endif /* H5FDh5mirror_H */
