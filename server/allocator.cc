// jemalloc's settings for this program; see jemalloc(3), TUNING. Frames of 1 MiB come and go, and
// the process is to stay within memory_max on a busy machine too. Freed pages go back to the system
// within a tenth of a second. There is one arena, because each arena keeps as much memory as its
// threads ever needed. Sixteen writers, memory_max 128 MiB: 76 to 84 MiB, with four arenas 90 to
// 98, with jemalloc's own settings 108 to 150; the CPU time is the same. Small objects come from
// each thread's cache and do not meet in the arena.
extern "C" {
// jemalloc looks it up by its name; hidden, as our symbols are, it would have no effect.
extern const char* malloc_conf __attribute__((visibility("default")));
const char* malloc_conf = "background_thread:true,narenas:1,dirty_decay_ms:100,muzzy_decay_ms:0";
}
