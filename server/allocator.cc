// jemalloc's settings for this program; see jemalloc(3), TUNING. Frames of 1 MiB come and go:
// freed pages go back to the system within half a second, so that the process stays within
// memory_max, and few arenas keep few of them.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,narenas:4,dirty_decay_ms:500,muzzy_decay_ms:0";
}
