// The words of a command line, as CLI11 understands them: to say which one is wrong, where CLI11
// says what it misses, and to find out where another program's words begin.
#ifndef H5MIRROR_BASE_CLI_WORDS_H_
#define H5MIRROR_BASE_CLI_WORDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/types/span.h"

namespace h5mirror {

// The index of the first of `words`, from `from` on, that is neither a flag of one of `apps` nor
// the value of one: a plain word, "--" or a flag that nobody knows. The number of words: there is
// none.
size_t SkipFlags(absl::Span<const CLI::App* const> apps, absl::Span<const std::string> words,
                 size_t from);

// Why `app` does not take `words`, without its name: the first verb or flag that it does not have,
// and which one may be meant ("there is no verb 'rolback'; did you mean rollback?"). Where each
// word is known: what `error` says.
std::string WhyNotParsed(const CLI::App& app, absl::Span<const std::string> words,
                         const CLI::ParseError& error);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CLI_WORDS_H_
