// h5edit, the editor of HDF5 files.
#include <string>
#include <vector>

#include "h5edit/run.h"

int main(int argc, char** argv) { return h5mirror::edit::Run({argv + 1, argv + argc}); }
