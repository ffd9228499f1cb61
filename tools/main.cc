// h5mirror, the admin CLI.
#include "tools/program.h"

int main(int argc, char** argv) { return h5mirror::tools::RunProgram(argc, argv, {}); }
