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

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_STOP_SIGNALS_H_
