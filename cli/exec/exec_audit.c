/* Loaded by the dynamic linker (LD_AUDIT, rtld-audit(7)) into every program that `h5mirror exec`
 * starts and into their children: notes each libhdf5 that is loaded, however it is loaded
 * (RTLD_LOCAL, a hashed name in a Python wheel), at the moment when it is, so that neither
 * _exit() nor SIGKILL hides it. Writes one JSON line per library to H5MIRROR_REPORT/<pid>.audit.
 *
 * Runs inside the dynamic linker, in a namespace of its own: system calls and string functions
 * only, no allocation. Never fails: without a report directory it does nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* libhdf5.so.310, libhdf5-45610c27.so.200.2.0, libhdf5_serial.so.103; none of the libraries that
 * only sit on top of it, and no plugin. */
static int is_libhdf5(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash != NULL ? slash + 1 : path;
  static const char* const kOthers[] = {"_hl",  "_cpp",  "_fortran", "_tools",    "_vfd",
                                        "_vol", "_java", "_f90",     "hl_fortran"};
  if (strncmp(name, "libhdf5", 7) != 0 || strstr(name, ".so") == NULL) return 0;
  for (size_t i = 0; i < sizeof(kOthers) / sizeof(kOthers[0]); ++i) {
    if (strstr(name, kOthers[i]) != NULL) return 0;
  }
  /* "libhdf5hl..." is no libhdf5. */
  return name[7] == '.' || name[7] == '-' || name[7] == '_';
}

/* The length of a UTF-8 sequence that begins with `lead`; 0 if none does. */
static size_t length_by_lead(unsigned char lead) {
  return lead < 0x80   ? 1
         : lead < 0xc2 ? 0
         : lead < 0xe0 ? 2
         : lead < 0xf0 ? 3
         : lead < 0xf5 ? 4
                       : 0;
}

/* Overlong forms, surrogates, and what lies beyond U+10FFFF (RFC 3629, 4). */
static int is_no_character(unsigned char lead, unsigned char second) {
  return (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
         (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
}

/* The length of the UTF-8 sequence at `text`; 0 if it is none. */
static size_t utf8_length(const char* text) {
  const unsigned char lead = (unsigned char)*text;
  const size_t length = length_by_lead(lead);
  for (size_t k = 1; k < length; ++k) {
    if (((unsigned char)text[k] & 0xc0) != 0x80) return 0; /* the end, too */
  }
  if (length > 1 && is_no_character(lead, (unsigned char)text[1])) return 0;
  return length;
}

/* Appends `text` as the inside of a JSON string. What is not UTF-8 (the kernel cuts programs' names
 * off after 15 bytes, whatever they are) becomes "\\xNN" in it, as the plugin has it. */
static size_t append_escaped(char* out, size_t used, size_t size, const char* text) {
  while (*text != '\0' && used + 8 < size) {
    const unsigned char c = (unsigned char)*text;
    const size_t length = utf8_length(text);
    if (length == 0) {
      used += (size_t)snprintf(out + used, 8, "\\\\x%02x", c);
    } else if (c == '"' || c == '\\') {
      out[used++] = '\\';
      out[used++] = (char)c;
    } else if (c < 0x20) {
      used += (size_t)snprintf(out + used, 8, "\\u%04x", c);
    } else {
      memcpy(out + used, text, length);
      used += length;
    }
    text += length == 0 ? 1 : length;
  }
  out[used] = '\0';
  return used;
}

/* What the kernel calls the program: its file's name, or its script's. */
static void program_name(char* out, size_t size) {
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);
  if (fd >= 0) close(fd);
  out[n > 0 ? n : 0] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

static void note(const char* directory, const char* path) {
  char file[4096];
  char line[6000];
  char program[64];
  const int pid = (int)getpid();
  if ((size_t)snprintf(file, sizeof(file), "%s/%d.audit", directory, pid) >= sizeof(file)) return;
  program_name(program, sizeof(program));
  size_t used =
      (size_t)snprintf(line, sizeof(line), "{\"event\":\"libhdf5\",\"pid\":%d,\"program\":\"", pid);
  used = append_escaped(line, used, sizeof(line), program);
  used += (size_t)snprintf(line + used, sizeof(line) - used, "\",\"path\":\"");
  used = append_escaped(line, used, sizeof(line) - 8, path);
  used += (size_t)snprintf(line + used, sizeof(line) - used, "\"}\n");
  const int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  if (write(fd, line, used) < 0) { /* Nobody to tell. */
  }
  close(fd);
}

EXPORT unsigned int la_version(unsigned int version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT unsigned int la_objopen(struct link_map* map, Lmid_t lmid, uintptr_t* cookie) {
  (void)lmid;
  (void)cookie;
  const char* directory = getenv("H5MIRROR_REPORT");
  if (directory != NULL && *directory != '\0' && map->l_name != NULL && is_libhdf5(map->l_name)) {
    note(directory, map->l_name);
  }
  return 0; /* No symbol bindings are audited: calls cost what they always cost. */
}
