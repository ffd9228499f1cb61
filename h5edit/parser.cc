#include "h5edit/parser.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/errno_status.h"
#include "base/strings.h"
#include "h5edit/definition_parser.h"
#include "h5edit/pattern.h"
#include "h5edit/target_words.h"
#include "h5edit/token_stream.h"

namespace h5mirror::edit {

namespace {

// One statement after the other. Each method is a rule of the grammar: false, with the problem
// noted in the stream, where the script does not follow it.
class Parser {
 public:
  Parser(TokenStream& in, FileReader read_file) : in_(in), definitions_(in, read_file) {}

  bool Run(std::vector<Statement>* statements) {
    while (!in_.AtEnd()) {
      if (in_.Take(";")) continue;
      Statement statement;
      statement.begin = in_.at();
      if (!Command(&statement)) return false;
      statement.end = in_.at() + 1;
      if (!in_.Expect(";")) return false;
      statements->push_back(std::move(statement));
    }
    return true;
  }

 private:
  bool Command(Statement* out) {
    if (in_.Take("CREATE")) return Create(out);
    if (in_.Take("DELETE")) return Delete(out);
    if (in_.Take("MODIFY")) return Modify(out);
    if (in_.Take("APPEND")) return Append(out);
    if (in_.Take("RENAME")) return Rename(out);
    if (in_.Take("COPY")) return Copy(out);
    if (in_.Take("SHOW")) return out->verb = Verb::kShow, TargetOf(out);
    if (in_.Take("LIST")) return out->verb = Verb::kList, Object(&out->target);
    if (in_.Take("MOVE"))
      return out->verb = Verb::kMoveObject, Object(&out->target) && Object(&out->destination);
    if (in_.Take("LINK")) return Link(out);
    return in_.Fail(
        "a command (CREATE, DELETE, MODIFY, APPEND, RENAME, COPY, SHOW, LIST, MOVE or LINK)");
  }

  ObjectWord TakeWord() {
    if (in_.Take("DATASET")) return ObjectWord::kDataset;
    return in_.Take("GROUP") ? ObjectWord::kGroup : ObjectWord::kNone;
  }

  // How many words that may name something stand at `skip` words from here.
  size_t CountNames() const {
    size_t count = 0;
    while (TokenStream::IsName(in_.Peek(count))) ++count;
    return count;
  }

  bool Object(Target* target) {
    if (!TokenStream::IsName(in_.Peek())) return in_.Fail("the path of an object");
    target->object_at = in_.at();
    target->object = ObjectPath(in_.Next());
    return CheckName(target->object, target->object_at);
  }

  // With one word the joined form, with two the pair.
  bool ObjectAndAttribute(size_t words, Target* target) {
    if (words == 0) return in_.Fail("an object and its attribute");
    target->is_joined = words == 1;
    target->object_at = target->attribute_at = in_.at();
    if (words > 1) {
      if (!Object(target)) return false;
      target->attribute_at = in_.at();
      const Token& name = in_.Next();
      target->attribute = name.text + name.quoted_part;
      if (target->attribute.empty())
        return in_.FailAt(target->attribute_at, "the name of the attribute is empty");
      return CheckAttributeName(target->attribute, target->attribute_at);
    }
    std::string why;
    if (!SplitJoined(in_.Peek(), &target->object, &target->attribute, &why))
      return in_.FailAt(in_.at(), why);
    in_.Next();
    return CheckAttributeName(target->attribute, target->attribute_at);
  }

  bool CheckAttributeName(const std::string& name, size_t at) {
    if (name.size() <= kAttributeNameMax) return CheckName(name, at);
    return in_.FailAt(at,
                      StrCat("the name of an attribute has at most ", kAttributeNameMax, " bytes"));
  }

  bool CheckName(const std::string& name, size_t at) {
    if (name.find('\0') == std::string::npos) return true;
    return in_.FailAt(at, "a NUL byte in a name");
  }

  bool TargetOf(Statement* out) {
    out->target.word = TakeWord();
    const size_t words = CountNames();
    return ObjectAndAttribute(words > 2 ? 2 : words, &out->target);
  }

  bool Create(Statement* out) {
    if (in_.Take("OR")) {
      if (!in_.Expect("REPLACE")) return false;
      out->or_replace = true;
    }
    out->target.word = TakeWord();
    const size_t words = CountNames();
    if (out->target.word == ObjectWord::kGroup && words == 1 && !in_.Peek(1).Is("{"))
      return CreateGroup(out);
    if (words == 0) return in_.Fail("an object and its attribute");
    return CreateDefined(words, out);
  }

  bool CreateGroup(Statement* out) {
    if (out->or_replace)
      return in_.FailAt(out->begin, "OR REPLACE is for attributes: a group is not replaced");
    out->verb = Verb::kCreateGroup;
    return Object(&out->target);
  }

  // An attribute or a dataset: which of them, only the layout in the definition tells.
  bool CreateDefined(size_t words, Statement* out) {
    const Token word = in_.Peek();
    const size_t word_at = in_.at();
    Target target = out->target;
    const bool is_attribute = TokenStream::IsName(word) && CanBeAttribute(words, word);
    if (is_attribute) {
      if (!ObjectAndAttribute(words > 2 ? 2 : words, &target)) return false;
    } else {
      in_.Next();
    }
    if (!definitions_.Parse(&out->definition)) return false;
    if (out->definition.layout.has_value()) return CreateDataset(words, word, word_at, out);
    if (!is_attribute) {
      std::string why, object, attribute;
      SplitJoined(word, &object, &attribute, &why);
      return in_.FailAt(word_at, why);
    }
    out->target = std::move(target);
    out->verb = Verb::kCreateAttribute;
    return definitions_.CheckAttribute(out->definition);
  }

  // `word`, at `word_at`, names it.
  bool CreateDataset(size_t words, const Token& word, size_t word_at, Statement* out) {
    if (out->target.word != ObjectWord::kDataset || words != 1) {
      return in_.FailAt(out->definition.layout->at,
                        "LAYOUT is for CREATE DATASET PATH {...}, which makes a dataset");
    }
    if (out->or_replace)
      return in_.FailAt(out->begin, "OR REPLACE is for attributes: a dataset is not replaced");
    out->verb = Verb::kCreateDataset;
    out->target.object_at = word_at;
    out->target.object = ObjectPath(word);
    return true;
  }

  // A dataset at the root may be named without a slash.
  static bool CanBeAttribute(size_t words, const Token& word) {
    std::string object, attribute, why;
    return words > 1 || SplitJoined(word, &object, &attribute, &why);
  }

  bool Delete(Statement* out) {
    if (in_.Take("IF")) {
      if (!in_.Expect("EXISTS")) return false;
      out->if_exists = true;
    }
    if (in_.Take("OBJECT")) {
      out->verb = Verb::kDeleteObject;
      return in_.Peek().kind == TokenKind::kPattern ? PatternOf(out) : Object(&out->target);
    }
    out->verb = Verb::kDeleteAttribute;
    const bool has_word = in_.Peek().Is("DATASET") || in_.Peek().Is("GROUP");
    if (in_.Peek(has_word ? 1 : 0).kind != TokenKind::kPattern) return TargetOf(out);
    out->target.word = TakeWord();
    return PatternOf(out);
  }

  // One word, of an attribute or of the link of an object.
  bool PatternOf(Statement* out) {
    Token token = in_.Peek();
    Target& target = out->target;
    if (out->verb == Verb::kDeleteObject) token.text = Plain(token.text);
    target.is_joined = true;
    target.pattern = token.has_quoted_part ? Target::Pattern::kQuoted : Target::Pattern::kWhole;
    target.object_at = target.attribute_at = in_.at();
    std::string why;
    if (!SplitJoined(token, &target.object, &target.attribute, &why))
      return in_.FailAt(in_.at(), why);
    in_.Next();
    return CheckAttributeName(target.attribute, target.attribute_at);
  }

  // Links have no slash in their names, as attributes may.
  static std::string Plain(const std::string& path) {
    std::string plain;
    for (const std::string& component : ComponentsOf(path)) plain += "/" + component;
    return plain;
  }

  bool Modify(Statement* out) {
    out->target.word = TakeWord();
    const size_t words = CountNames();
    const bool has_ranges = in_.Peek(words).Is("[");
    if (has_ranges && words == 1 && out->target.word == ObjectWord::kDataset) {
      out->verb = Verb::kModifyDataset;
      if (!Object(&out->target)) return false;
    } else {
      out->verb = Verb::kModifyAttribute;
      if (!ObjectAndAttribute(words > 2 ? 2 : words, &out->target)) return false;
    }
    if (has_ranges) {
      const size_t bracket = in_.at();
      if (!definitions_.Ranges(&out->ranges)) return false;
      if (out->ranges.empty() && out->verb == Verb::kModifyAttribute) {
        return in_.FailAt(bracket, "expected an index or start:count for each dimension");
      }
    }
    return definitions_.Values(&out->values);
  }

  // The brackets of a dataset hold nothing: where the values go is known.
  bool Append(Statement* out) {
    out->target.word = TakeWord();
    const size_t words = CountNames();
    const bool has_brackets = in_.Peek(words).Is("[");
    if (has_brackets && words == 1 && out->target.word == ObjectWord::kDataset) {
      out->verb = Verb::kAppendDataset;
      if (!Object(&out->target)) return false;
      in_.Next();
      if (!in_.Expect("]")) return false;
    } else {
      out->verb = Verb::kAppendAttribute;
      if (!ObjectAndAttribute(words > 2 ? 2 : words, &out->target)) return false;
    }
    return definitions_.Values(&out->values);
  }

  bool Rename(Statement* out) {
    out->verb = Verb::kRenameAttribute;
    out->target.word = TakeWord();
    const size_t words = CountNames();
    if (words < 2) {
      in_.Skip(words);
      return in_.Fail(words == 0 ? "an object and its attribute" : "the new name");
    }
    if (!ObjectAndAttribute(words > 2 ? 2 : 1, &out->target)) return false;
    out->new_name_at = in_.at();
    if (in_.Peek().kind == TokenKind::kPath) {
      return in_.FailAt(in_.at(),
                        "a new name has no slash: the attribute stays with its object; quote it "
                        "where the slash is part of the name");
    }
    out->new_name = in_.Next().text;
    if (out->new_name.empty()) return in_.FailAt(out->new_name_at, "the new name is empty");
    if (out->new_name == out->target.attribute)
      return in_.FailAt(out->new_name_at, "the new name is the old one");
    return CheckAttributeName(out->new_name, out->new_name_at);
  }

  bool Copy(Statement* out) {
    out->verb = Verb::kCopyAttribute;
    out->target.word = TakeWord();
    const size_t words = CountNames();
    const bool second_word = in_.Peek(words).Is("DATASET") || in_.Peek(words).Is("GROUP");
    const size_t first = second_word ? words : words >= 4 ? 2 : 1;
    if (!second_word && (words < 2 || words == 3)) {
      in_.Skip(words);
      return in_.Fail(words == 3 ? "the name of the new attribute (COPY takes OBJECT/ATTRIBUTE "
                                   "twice, or OBJECT ATTRIBUTE twice)"
                                 : "where to copy to");
    }
    if (first > 2) {
      in_.Skip(2);
      return in_.Fail("where to copy to");
    }
    if (!ObjectAndAttribute(first, &out->target)) return false;
    return CopyDestination(first, out);
  }

  bool CopyDestination(size_t source_words, Statement* out) {
    out->destination.word = TakeWord();
    const Token& word = in_.Peek();
    const bool is_same_object = source_words == 1 && word.kind != TokenKind::kPath &&
                                out->destination.word == ObjectWord::kNone;
    if (!is_same_object) {
      const size_t left = CountNames();
      if (left < source_words) {
        in_.Skip(left);
        return in_.Fail("the name of the new attribute");
      }
      return ObjectAndAttribute(source_words, &out->destination);
    }
    out->destination = out->target;
    out->destination.attribute_at = in_.at();
    out->destination.attribute = in_.Next().text;
    if (out->destination.attribute.empty())
      return in_.FailAt(out->destination.attribute_at, "the name of the attribute is empty");
    return CheckAttributeName(out->destination.attribute, out->destination.attribute_at);
  }

  bool Link(Statement* out) {
    if (in_.Take("HARD")) {
      out->verb = Verb::kLinkHard;
      return Object(&out->target) && Object(&out->destination);
    }
    const bool is_external = in_.Peek().Is("EXTERNAL");
    if (!is_external && !in_.Peek().Is("SOFT")) return in_.Fail("HARD, SOFT or EXTERNAL");
    in_.Next();
    out->verb = is_external ? Verb::kLinkExternal : Verb::kLinkSoft;
    if (is_external) {
      if (!LinkPart("the name of the file that the link leads to", &out->link_file)) return false;
    }
    const size_t at = out->target.object_at = in_.at();
    if (!LinkPart("the path that the link leads to", &out->link_value)) return false;
    if (out->link_file.size() + out->link_value.size() > kLinkValueMax)
      return in_.FailAt(at, StrCat("a link keeps at most ", kLinkValueMax, " bytes"));
    return Object(&out->destination);
  }

  // A text that HDF5 keeps in a link. A NUL is refused, because HDF5 would cut the text off there.
  bool LinkPart(const std::string& what, std::string* out) {
    const size_t at = in_.at();
    if (!TokenStream::IsName(in_.Peek())) return in_.Fail(what);
    *out = PathText(in_.Next());
    if (out->empty()) return in_.FailAt(at, StrCat(what, " is empty"));
    return CheckName(*out, at);
  }

  TokenStream& in_;
  DefinitionParser definitions_;
};

bool CannotRead(const std::string& name, std::string* error) {
  *error = ToStd(ErrnoToStatus(errno, StrCat("cannot read ", name)).message());
  return false;
}

}  // namespace

bool ReadTextFile(const std::string& path, std::string* text, std::string* error) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CannotRead(path, error);
  const bool read = ReadText(fd, path, text, error);
  close(fd);
  return read;
}

bool ReadText(int fd, const std::string& name, std::string* text, std::string* error) {
  std::array<char, 1 << 16> part;
  text->clear();
  while (true) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got == 0) return true;
    if (got > 0) {
      text->append(part.data(), static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return CannotRead(name, error);  // A directory can be opened, and not read.
    }
  }
}

bool Parse(const Source& source, FileReader read_file, std::vector<Statement>* statements,
           Problem* problem) {
  std::vector<Token> tokens;
  if (!Tokenize(source, &tokens, problem)) return false;
  TokenStream in(source, std::move(tokens));
  if (Parser(in, read_file).Run(statements)) return true;
  *problem = in.problem();
  return false;
}

}  // namespace h5mirror::edit
