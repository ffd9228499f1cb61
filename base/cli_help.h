// The text of --help, at most 80 columns wide: the width that every terminal has.
#ifndef H5MIRROR_BASE_CLI_HELP_H_
#define H5MIRROR_BASE_CLI_HELP_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"

namespace h5mirror {

inline constexpr size_t kHelpColumns = 80;

// `text` with lines of at most `columns` bytes. Lines that follow each other make one paragraph. A
// line that begins with a space is not joined with others. If it is too long, its rest goes to the
// next line, indented further. A word longer than a line stays whole.
std::string Fill(std::string_view text, size_t columns);

// Gives the narrow form to `app`, and to the verbs that are added to it afterwards.
void UseNarrowHelp(CLI::App& app);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CLI_HELP_H_
