// jemalloc's settings for this program; see jemalloc(3), TUNING. Frames of 1 MiB come and go:
// freed pages go back to the system within a tenth of a second, so that the process stays within
// memory_max on a busy machine too (half a second: 16 writers took 102 to 136 MiB of 128; a tenth:
// 83 to 105, in the same time), and few arenas keep few of them.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,narenas:4,dirty_decay_ms:100,muzzy_decay_ms:0";
}
