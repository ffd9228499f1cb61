// h5edit, from its arguments to its exit code.
#ifndef H5MIRROR_H5EDIT_RUN_H_
#define H5MIRROR_H5EDIT_RUN_H_

#include <string>
#include <vector>

namespace h5mirror::edit {

// Runs one command line, without the program's name. 0: all was done; 1: anything else; 128 + n
// after signal n.
int Run(const std::vector<std::string>& words);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_RUN_H_
