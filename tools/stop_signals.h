// SIGINT, SIGTERM and SIGHUP while a tool has something to put in order before it ends.
#ifndef H5MIRROR_TOOLS_STOP_SIGNALS_H_
#define H5MIRROR_TOOLS_STOP_SIGNALS_H_

namespace h5mirror::tools {

// From its making on the first of these signals is only noted, and a second one ends the program.
// What is ignored (under nohup) stays so. One in a process.
class StopSignals {
 public:
  StopSignals();
  // The signal that came; 0: none.
  int number() const;
};

// Work that may be broken off anywhere. While this lives, the first of these signals leaves it
// `seconds`; then the program says `last_words` on standard error and ends by that signal, as a
// second one ends it. One at a time.
class BreakableWork {
 public:
  // `last_words` must outlive it.
  BreakableWork(unsigned seconds, const char* last_words);
  BreakableWork(const BreakableWork&) = delete;
  ~BreakableWork();
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_STOP_SIGNALS_H_
