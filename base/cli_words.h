// The words of a command line, as CLI11 understands them. CLI11 only names a missing word; this
// names the wrong one. It also finds where another program's words begin.
#ifndef H5MIRROR_BASE_CLI_WORDS_H_
#define H5MIRROR_BASE_CLI_WORDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/types/span.h"

namespace h5mirror {

// The index of the first of `words`, from `from` on, that is neither a flag of one of `apps` nor
// its value: a plain word, "--" or an unknown flag. The number of words: there is none.
size_t SkipFlags(absl::Span<const CLI::App* const> apps, absl::Span<const std::string> words,
                 size_t from);

// Why `app` does not take `words`, without its name: the first unknown verb or flag, and the likely
// one ("there is no verb 'rolback'; did you mean rollback?"). If all words are known, the text of
// `error`.
std::string WhyNotParsed(const CLI::App& app, absl::Span<const std::string> words,
                         const CLI::ParseError& error);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CLI_WORDS_H_
