#include "base/cli_words.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "absl/strings/str_split.h"
#include "base/nearest_name.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

// A message shows a list of verbs whole up to this length.
constexpr size_t kVerbsListedMax = 5;

// "-5" is a value.
bool IsFlag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--" &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

const CLI::Option* FindFlag(absl::Span<const CLI::App* const> apps, const std::string& name) {
  for (size_t i = apps.size(); i > 0; --i) {
    const CLI::Option* found = apps[i - 1]->get_option_no_throw(name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// The content of one word that begins with '-'.
struct FlagWord {
  std::string unknown;                   // the first unknown name; empty: all are known
  const CLI::Option* waiting = nullptr;  // its value is the next word
};

FlagWord ReadLongFlag(absl::Span<const CLI::App* const> apps, const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const CLI::Option* flag = FindFlag(apps, name);
  if (flag == nullptr) return {name, nullptr};
  const bool waits = equals == std::string::npos && flag->get_items_expected_min() > 0;
  return {"", waits ? flag : nullptr};
}

// -n, -n3, -rq
FlagWord ReadShortFlags(absl::Span<const CLI::App* const> apps, const std::string& word) {
  for (size_t i = 1; i < word.size(); ++i) {
    const std::string name = {'-', word[i]};
    const CLI::Option* flag = FindFlag(apps, name);
    if (flag == nullptr) return {name, nullptr};
    if (flag->get_items_expected_min() > 0) return {"", i + 1 == word.size() ? flag : nullptr};
  }
  return {};
}

FlagWord ReadFlag(absl::Span<const CLI::App* const> apps, const std::string& word) {
  return word.starts_with("--") ? ReadLongFlag(apps, word) : ReadShortFlags(apps, word);
}

// The index behind the values of `flag`, which begin at `at`.
size_t SkipValues(const CLI::Option& flag, absl::Span<const std::string> words, size_t at) {
  ++at;
  if (flag.get_items_expected_max() > 1 && flag.get_allow_extra_args()) {
    while (at < words.size() && !IsFlag(words[at]) && words[at] != "--") ++at;
  }
  return std::min(at, words.size());
}

std::vector<const CLI::App*> VerbsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "; did you mean NAME?", or nothing: a short word is near to too many names. `dashes` are put
// before the word and the names.
std::string Suggestion(std::string_view word, const std::vector<std::string>& names,
                       std::string_view dashes = "") {
  constexpr size_t kEditsMax = 2;
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view nearest =
      NearestName(word, views, std::min(kEditsMax, (word.size() + 1) / 2));
  return nearest.empty() ? "" : StrCat("; did you mean ", dashes, nearest, "?");
}

std::string NoSuchVerb(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* verb : VerbsOf(app)) names.push_back(verb->get_name());
  return StrCat("there is no verb '", word, "'", Suggestion(word, names));
}

std::string NoSuchFlag(absl::Span<const CLI::App* const> apps, const std::string& flag) {
  std::vector<std::string> names;
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  const std::string near =
      flag.starts_with("--") ? Suggestion(std::string_view(flag).substr(2), names, "--") : "";
  return StrCat(apps.back()->get_name(), " has no flag ", flag, near);
}

// Says which word is wrong, for people.
std::optional<std::string> FindWrongWord(const CLI::App& app, absl::Span<const std::string> words) {
  std::vector<const CLI::App*> apps = {&app};
  for (size_t at = SkipFlags(apps, words, 0); at < words.size();
       at = SkipFlags(apps, words, at + 1)) {
    if (words[at] == "--") return std::nullopt;
    if (IsFlag(words[at])) return NoSuchFlag(apps, ReadFlag(apps, words[at]).unknown);
    const std::vector<const CLI::App*> verbs = VerbsOf(*apps.back());
    if (verbs.empty()) continue;
    const auto verb = std::find_if(verbs.begin(), verbs.end(), [&](const CLI::App* one) {
      return one->get_name() == words[at];
    });
    if (verb == verbs.end()) return NoSuchVerb(*apps.back(), words[at]);
    apps.push_back(*verb);
  }
  const std::vector<const CLI::App*> verbs = VerbsOf(*apps.back());
  if (verbs.empty() || apps.back()->get_require_subcommand_min() == 0) return std::nullopt;
  std::string list;
  for (const CLI::App* verb : verbs) StrAppend(&list, list.empty() ? "" : ", ", verb->get_name());
  return StrCat(apps.back()->get_name(), " wants a verb",
                verbs.size() <= kVerbsListedMax ? StrCat(": one of ", list) : "");
}

// The verb, at any depth, that CLI11 had reached.
const CLI::App& VerbMeant(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().back();
  return *verb;
}

// "h5mirror log [OPTIONS] FILE"
std::string UsageOf(const CLI::App& verb) {
  std::string usage = verb.get_name();
  for (const CLI::App* parent = verb.get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    usage = StrCat(parent->get_name(), " ", usage);
  }
  StrAppend(&usage, " [OPTIONS]");
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name =
        StrCat(option->get_name(/*positional=*/true),
               option->get_expected_max() >= CLI::detail::expected_max_vector_size ? "..." : "");
    StrAppend(&usage, " ", option->get_required() ? name : StrCat("[", name, "]"));
  }
  return usage;
}

// `extra`: the words that CLI11 did not expect, in its order. A flag among them is another verb's.
std::string UnexpectedWord(const CLI::App& verb, absl::Span<const std::string> words,
                           const std::string& extra) {
  const std::vector<std::string> unexpected = absl::StrSplit(extra, ' ');
  const auto is_unexpected = [&](const std::string& word) {
    return std::find(unexpected.begin(), unexpected.end(), word) != unexpected.end();
  };
  const auto first = std::find_if(words.begin(), words.end(), is_unexpected);
  const std::string word = first == words.end() ? extra : *first;
  if (IsFlag(word)) return StrCat(verb.get_name(), " has no flag ", word);
  return StrCat(verb.get_name(), " takes no further word '", word, "'; write ", UsageOf(verb));
}

// CLI11's error, with the parts that it leaves out: the verb, and the words to write.
std::string InPlainWords(const CLI::App& verb, absl::Span<const std::string> words,
                         const CLI::ParseError& error) {
  const std::string text = error.what();
  constexpr std::string_view kRequired = " is required";
  constexpr std::string_view kUnexpected = "not expected: ";
  if (error.get_name() == "RequiredError" && text.ends_with(kRequired)) {
    return StrCat(verb.get_name(), ": ", text.substr(0, text.size() - kRequired.size()),
                  " is missing; write ", UsageOf(verb));
  }
  const size_t extra = text.find(kUnexpected);
  if (extra != std::string::npos) {
    return UnexpectedWord(verb, words, text.substr(extra + kUnexpected.size()));
  }
  const size_t colon = text.find(": ");
  if (error.get_name() == "ArgumentMismatch" && text.ends_with("missing") &&
      colon != std::string::npos) {
    return StrCat(text.substr(0, colon), " needs a value");
  }
  return text;
}

}  // namespace

size_t SkipFlags(absl::Span<const CLI::App* const> apps, absl::Span<const std::string> words,
                 size_t from) {
  size_t at = from;
  while (at < words.size() && IsFlag(words[at])) {
    const FlagWord flag = ReadFlag(apps, words[at]);
    if (!flag.unknown.empty()) break;
    at = flag.waiting == nullptr ? at + 1 : SkipValues(*flag.waiting, words, at + 1);
  }
  return at;
}

std::string WhyNotParsed(const CLI::App& app, absl::Span<const std::string> words,
                         const CLI::ParseError& error) {
  const std::optional<std::string> wrong = FindWrongWord(app, words);
  return wrong ? *wrong : InPlainWords(VerbMeant(app), words, error);
}

}  // namespace h5mirror
