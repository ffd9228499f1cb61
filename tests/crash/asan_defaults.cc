// Thousands of stores are opened: ASan's record of each allocation would take half the time.
#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=2:quarantine_size_mb=8:thread_local_quarantine_size_kb=32";
}
#endif
