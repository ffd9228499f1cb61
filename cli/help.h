// The text of --help below the flags.
#ifndef H5MIRROR_CLI_HELP_H_
#define H5MIRROR_CLI_HELP_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace h5mirror::tools {

// Gives each verb of `app` its examples, and `app` itself the exit codes. Call it when all verbs
// are there.
void AddFooters(CLI::App& app);

// `help` becomes `--help`, and `help VERB` becomes `VERB --help`, where `app` has that verb, else
// `VERB`.
void TakeHelp(const CLI::App& app, std::vector<std::string>& arguments);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_HELP_H_
