// SIGINT, SIGTERM and SIGHUP while a file is edited.
#ifndef H5MIRROR_TOOLS_H5EDIT_SIGNALS_H_
#define H5MIRROR_TOOLS_H5EDIT_SIGNALS_H_

namespace h5mirror::edit {

// From its making on the first of these signals is only noted, and a second one ends the program.
// What is ignored (under nohup) stays so. One in a process.
class StopSignals {
 public:
  StopSignals();
  // The signal that came; 0: none.
  int number() const;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_TOOLS_H5EDIT_SIGNALS_H_
