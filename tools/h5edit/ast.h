// A script as it is understood: statements, with the places of what they name. Knows no HDF5.
//
// Places are offsets in the script; Source::PlaceOf() tells line and column.
#ifndef H5MIRROR_TOOLS_H5EDIT_AST_H_
#define H5MIRROR_TOOLS_H5EDIT_AST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/h5edit/lexer.h"

namespace h5mirror::edit {

// What CREATE can give an attribute or a dataset, and the class of values that it takes.
enum class TypeClass : uint8_t { kInteger, kReal, kString, kEnum };
enum class StringPad : uint8_t { kNullTerm, kNullPad, kSpacePad };

struct EnumMember {
  std::string name;
  Number value;
  size_t at = 0;
};

struct TypeSpec {
  size_t at = 0;
  TypeClass type_class = TypeClass::kReal;
  std::string name;  // "H5T_STD_I32BE"; of strings empty; of an enum its base
  // Strings:
  bool is_variable = false;
  uint64_t size = 0;  // STRSIZE in bytes
  StringPad pad = StringPad::kNullTerm;
  bool is_utf8 = false;
  bool is_fortran = false;
  std::vector<EnumMember> members;
};

struct SpaceSpec {
  enum class Kind : uint8_t { kScalar, kNull, kSimple } kind = Kind::kScalar;
  size_t at = 0;
  std::vector<uint64_t> dims;
  std::vector<uint64_t> max_dims;  // of datasets only; empty: as dims
};
inline constexpr uint64_t kUnlimited = UINT64_MAX;

struct Value {
  enum class Kind : uint8_t { kNumber, kQuoted, kWord } kind = Kind::kNumber;
  size_t at = 0;
  Number number;
  std::string text;  // of a quoted one or a word
};

// `{1, 2, 3}`, or the content of a file.
struct ValueList {
  size_t at = 0;
  size_t end = 0;    // of the closing brace
  std::string file;  // not empty: they came from there
  std::vector<Value> values;
};

struct LayoutSpec {
  enum class Kind : uint8_t { kContiguous, kCompact, kChunked } kind = Kind::kContiguous;
  size_t at = 0;
  std::vector<uint64_t> chunk;
  struct Filter {
    enum class Kind : uint8_t { kShuffle, kDeflate, kFletcher32 } kind = Kind::kShuffle;
    unsigned level = 0;
  };
  std::vector<Filter> filters;
};

struct Definition {
  TypeSpec type;  // H5T_NATIVE_FLOAT unless said
  SpaceSpec space;
  std::optional<LayoutSpec> layout;  // of datasets
  std::optional<Value> fill_value;
  std::optional<ValueList> values;  // may be left out of datasets only
};

enum class ObjectWord : uint8_t { kNone, kDataset, kGroup };

// An object of the file, or an attribute of one.
struct Target {
  ObjectWord word = ObjectWord::kNone;
  bool is_joined = false;  // "/g/d/attribute": one word
  // Of DELETE: the names, that of an object's link as the attribute, have wildcards. kQuoted: the
  // last one has none, whatever is in it.
  enum class Pattern : uint8_t { kNone, kWhole, kQuoted } pattern = Pattern::kNone;
  size_t object_at = 0;
  std::string object;  // absolute path
  size_t attribute_at = 0;
  std::string attribute;
};

// [start:count] of one dimension; a plain index is one element.
struct IndexRange {
  size_t at = 0;
  uint64_t start = 0;
  uint64_t count = 1;
};

enum class Verb : uint8_t {
  kCreateAttribute,
  kDeleteAttribute,
  kModifyAttribute,
  kAppendAttribute,
  kRenameAttribute,
  kCopyAttribute,
  kShow,
  kList,
  kCreateGroup,
  kCreateDataset,
  kModifyDataset,
  kAppendDataset,
  kDeleteObject,
  kMoveObject,
  kLinkHard,
  kLinkSoft,
  kLinkExternal,
};
// The first words of such a statement.
const char* VerbName(Verb verb);
// Whether it changes the file.
inline bool Changes(Verb verb) { return verb != Verb::kShow && verb != Verb::kList; }

struct Statement {
  Verb verb = Verb::kShow;
  size_t begin = 0;
  size_t end = 0;  // behind its ';'
  Target target;
  Target destination;    // of COPY, MOVE and LINK (the new link's path is its object)
  std::string new_name;  // of RENAME
  size_t new_name_at = 0;
  std::string link_file;   // of LINK EXTERNAL
  std::string link_value;  // of LINK SOFT and EXTERNAL: the path, as it is kept
  bool if_exists = false;
  bool or_replace = false;
  Definition definition;
  ValueList values;  // of MODIFY and APPEND
  std::vector<IndexRange> ranges;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_TOOLS_H5EDIT_AST_H_
