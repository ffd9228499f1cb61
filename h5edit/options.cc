#include "h5edit/options.h"

#include <unistd.h>

#include <optional>
#include <string_view>

#include "base/nearest_name.h"
#include "base/strings.h"
#include "h5edit/parser.h"

namespace h5mirror::edit {
namespace {

constexpr char kUsage[] =
    "usage: h5edit [OPTIONS] H5FILE\n"
    "       h5edit --recover [--check | --discard] H5FILE\n"
    "Edits an HDF5 file in place, by commands such as\n"
    "    CREATE /g/d units {H5T_STRING {STRSIZE 3} SCALAR {'mm'}};\n"
    "    MODIFY /g/d/scale {2.5};   DELETE GROUP / old;   RENAME /g/d a b;   COPY /a /g/a;\n"
    "\n"
    "  -c, --command TEXT     the commands, each ended by ';'\n"
    "      --command-file F   the commands are in the file F; '-': on standard input\n"
    "      --atomic LEVEL     yes: all commands or none (the default); inc: the file moves with "
    "each\n"
    "                         command that succeeded; no: it is written straight through\n"
    "      --durable          the changes survive power loss\n"
    "      --dryrun           check all commands against the file, and change nothing\n"
    "      --keep-history     keep earlier states as versions beside the file (h5mirror log)\n"
    "      --server ADDRESS   each change is a version on that server; a file that is mirrored\n"
    "                         already has them there without this\n"
    "      --backup=copy      the classic way: a copy of the file, .NAME.bck, until all is done\n"
    "      --restore          with --backup=copy: after an error put the copy back at once\n"
    "      --diff             print attributes before and after\n"
    "      --json             print a JSON object for each command, and a summary\n"
    "  -v, --verbose          print each step\n"
    "      --recover          put a file in order after a crash; --check only looks, --discard\n"
    "                         gives up an unfinished change\n"
    "  -h, --help             this text\n"
    "      --version          name, version and date\n";

constexpr std::string_view kFlags[] = {
    "--command", "--command-file", "--atomic",  "--durable", "--dryrun",  "--keep-history",
    "--server",  "--backup",       "--restore", "--diff",    "--json",    "--verbose",
    "--recover", "--check",        "--discard", "--help",    "--version",
};

std::string UnknownFlag(const std::string& name) {
  const std::string_view nearest = NearestName(name, kFlags);
  return StrCat("unknown option ", name,
                nearest.empty() ? "" : StrCat("; did you mean ", nearest, "?"));
}

// A word of the command line: its name, and what stands behind '='.
struct Flag {
  std::string name;
  std::optional<std::string> value;
};

Flag Split(const std::string& word) {
  const size_t equals = word.find('=');
  if (!word.starts_with("--") || equals == std::string::npos) return {word, std::nullopt};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

class Reader {
 public:
  Reader(const std::vector<std::string>& words, Options* out) : words_(words), out_(*out) {}

  std::string Run() {
    if (AsksForHelp()) return out_.task = Task::kHelp, "";
    for (; next_ < words_.size() && words_[next_].starts_with('-') && words_[next_] != "-";
         ++next_) {
      const std::string wrong = One(Split(words_[next_]));
      if (!wrong.empty() || out_.task == Task::kVersion) return wrong;
    }
    return File();
  }

 private:
  // Whatever is wrong with the other options. A word that belongs to one does not end them.
  bool AsksForHelp() const {
    bool is_value = false;
    for (const std::string& word : words_) {
      if (word == "-h" || word == "--help") return true;
      if (!is_value && (!word.starts_with('-') || word == "-")) return false;
      is_value = !is_value && TakesWord(word);
    }
    return false;
  }

  static bool TakesWord(const std::string& word) {
    return word == "-c" || word == "--command" || word == "--command-file" || word == "--atomic" ||
           word == "--backup" || word == "--server";
  }

  std::string One(const Flag& flag) {
    if (flag.name == "-c" || flag.name == "--command") return Command(flag);
    if (flag.name == "--command-file") return CommandFile(flag);
    if (flag.name == "--atomic") return Level(flag);
    if (flag.name == "--backup") return Backup(flag);
    if (flag.name == "--server") return Server(flag);
    bool* const toggle = Toggle(flag.name);
    if (toggle == nullptr && flag.name != "--version" && flag.name != "--recover") {
      return UnknownFlag(flag.name);
    }
    if (flag.value.has_value()) return StrCat(flag.name, " takes no value");
    if (toggle != nullptr) *toggle = true;
    if (flag.name == "--version") out_.task = Task::kVersion;
    if (flag.name == "--recover") out_.task = Task::kRecover;
    return "";
  }

  bool* Toggle(const std::string& name) {
    if (name == "--dryrun") return &out_.dry_run;
    if (name == "--durable") return &out_.durable;
    if (name == "--keep-history") return &out_.keep_history;
    if (name == "--restore") return &out_.restores;
    if (name == "--check") return &out_.checks;
    if (name == "--discard") return &out_.discards;
    if (name == "--json") return &out_.json;
    if (name == "--diff") return &out_.diff;
    if (name == "-v" || name == "--verbose") return &out_.verbose;
    return nullptr;
  }

  // The word that belongs to an option.
  bool Value(const Flag& flag, std::string* value) {
    if (flag.value.has_value()) return *value = *flag.value, true;
    if (next_ + 1 >= words_.size()) return false;
    *value = words_[++next_];
    return true;
  }

  std::string NewSource() {
    if (!out_.script_name.empty())
      return "the commands were given already: -c and --command-file go together neither with each "
             "other nor twice";
    return "";
  }

  std::string Command(const Flag& flag) {
    std::string text;
    if (!Value(flag, &text)) return StrCat(flag.name, " wants a word: the commands");
    if (std::string wrong = NewSource(); !wrong.empty()) return wrong;
    out_.script_name = "-c";
    out_.script = text;
    return "";
  }

  std::string CommandFile(const Flag& flag) {
    std::string path;
    if (!Value(flag, &path)) return StrCat(flag.name, " wants a word: the file of commands");
    if (std::string wrong = NewSource(); !wrong.empty()) return wrong;
    std::string error;
    if (path == "-") {
      out_.script_name = "stdin";
      return ReadText(STDIN_FILENO, "standard input", &out_.script, &error) ? "" : error;
    }
    out_.script_name = path;
    return ReadTextFile(path, &out_.script, &error) ? "" : error;
  }

  std::string Level(const Flag& flag) {
    std::string level;
    if (!Value(flag, &level)) return "--atomic wants a word: yes, inc or no";
    if (level.starts_with('='))
      return "--atomic==LEVEL is written --atomic LEVEL or --atomic=LEVEL";
    if (level != "yes" && level != "inc" && level != "no")
      return StrCat("--atomic is yes, inc or no, not ", level.empty() ? "empty" : level);
    out_.atomic = level == "yes" ? Atomic::kYes : level == "inc" ? Atomic::kInc : Atomic::kNo;
    return "";
  }

  std::string Backup(const Flag& flag) {
    std::string kind;
    if (!Value(flag, &kind)) return "--backup wants a word: copy";
    if (kind != "copy") return StrCat("--backup is copy, not ", kind.empty() ? "empty" : kind);
    out_.copies_backup = true;
    return "";
  }

  std::string Server(const Flag& flag) {
    if (!Value(flag, &out_.server) || out_.server.empty() || out_.server.starts_with('-'))
      return "--server wants a word: HOST, HOST:PORT or unix:PATH";
    if (out_.server.find(',') != std::string::npos)
      return StrCat("--server is one server, not ", out_.server);
    if (out_.server == "embedded")
      return "--server embedded is spelled --keep-history: versions beside the file, and no server";
    return "";
  }

  std::string File() {
    const bool recovers = out_.task == Task::kRecover;
    if (!recovers && out_.script_name.empty())
      return "no commands: give -c TEXT or --command-file FILE";
    if (recovers && !out_.script_name.empty()) return "--recover takes no commands";
    if (next_ >= words_.size()) return "no data file";
    out_.file = words_[next_++];
    if (next_ < words_.size()) return StrCat("one data file, and then: ", words_[next_]);
    return Together();
  }

  // Options that do not go together.
  std::string Together() {
    for (const auto check : {&Reader::CheckRecovery, &Reader::CheckBackup, &Reader::CheckServer,
                             &Reader::CheckHistory}) {
      if (std::string wrong = (this->*check)(); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string CheckRecovery() const {
    const bool recovers = out_.task == Task::kRecover;
    if (!recovers && (out_.checks || out_.discards))
      return "--check and --discard go with --recover";
    if (recovers && out_.dry_run) return "--recover --check only looks: --dryrun is for commands";
    if (out_.checks && out_.discards) return "--check looks and --discard removes: one of the two";
    return "";
  }

  std::string CheckBackup() const {
    if (out_.restores && (!out_.copies_backup || out_.atomic == Atomic::kNo)) {
      return "--restore goes with --backup=copy and --atomic yes or inc; without a copy --atomic "
             "yes leaves the file as it was";
    }
    if (out_.copies_backup && out_.keep_history)
      return "--backup=copy and --keep-history: one of the two";
    return "";
  }

  std::string CheckServer() const {
    if (out_.server.empty()) return "";
    if (out_.task == Task::kRecover) return "--recover speaks to no server: leave out --server";
    if (out_.keep_history) return "--server and --keep-history: one of the two";
    if (out_.copies_backup) return "--backup=copy and --server: one of the two";
    return "";
  }

  std::string CheckHistory() const {
    if (out_.keep_history && out_.atomic == Atomic::kNo)
      return "--keep-history goes with --atomic yes or inc";
    return "";
  }

  const std::vector<std::string>& words_;
  Options& out_;
  size_t next_ = 0;
};

}  // namespace

std::string ParseOptions(const std::vector<std::string>& words, Options* options) {
  return Reader(words, options).Run();
}

std::string_view UsageText() { return kUsage; }

}  // namespace h5mirror::edit
