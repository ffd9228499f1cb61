// h5mirror, the admin CLI.
#include "cli/program.h"

int main(int argc, char** argv) { return h5mirror::tools::RunProgram(argc, argv, {}); }
