// The syntax tree of a script: statements, with the places of their names. Independent of HDF5.
//
// Places are offsets in the script; Source::PlaceOf() tells line and column.
#ifndef H5MIRROR_H5EDIT_AST_H_
#define H5MIRROR_H5EDIT_AST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "h5edit/lexer.h"

namespace h5mirror::edit {

// The types that CREATE can give an attribute or a dataset, and the class of values that each
// takes.
enum class TypeClass : uint8_t {
  kInteger,
  kReal,
  kString,
  kEnum,
  kBitfield,
  kOpaque,
  kReference,
  kCompound,
  kArray,
  kList,       // of variable length: H5T_VLEN
  kCommitted,  // a type of the file, which a script alone does not know
};
// How deep types may be made of types, and values of values.
inline constexpr int kDepthMax = 32;
// The largest size of one value. HDF5 keeps such sizes in 32 bits, and reports no error for larger
// ones.
inline constexpr uint64_t kTypeBytesMax = INT32_MAX;

// HDF5 keeps the length of an attribute's name (with its NUL), and of a link's target, in 16 bits.
// If a link's name and its target are both nearly that long, HDF5 1.14.5 writes files that it
// cannot read.
inline constexpr size_t kAttributeNameMax = UINT16_MAX - 1;
inline constexpr size_t kLinkNameMax = 32'000;
inline constexpr size_t kLinkValueMax = 32'000;

enum class StringPad : uint8_t { kNullTerm, kNullPad, kSpacePad };

struct EnumMember {
  std::string name;
  Number value;
  size_t at = 0;
};

struct TypeSpec {
  size_t at = 0;
  TypeClass type_class = TypeClass::kReal;
  // "H5T_STD_I32BE"; of an enum its base; of a committed type its path; of others empty
  std::string name;
  // Strings:
  bool is_variable = false;
  uint64_t size = 0;  // STRSIZE in bytes; of opaques, too; 0: that of the first value
  StringPad pad = StringPad::kNullTerm;
  bool is_utf8 = false;
  bool is_fortran = false;
  std::vector<EnumMember> members;  // of enums
  std::string tag;                  // of opaques
  bool is_region = false;           // of references: of a part of a dataset
  std::vector<uint64_t> dims;       // of arrays
  // The members of a compound; the element type of an array or a list.
  std::vector<TypeSpec> parts;
  std::string member;  // the name in the compound that it is a part of
};

struct SpaceSpec {
  enum class Kind : uint8_t { kScalar, kNull, kSimple } kind = Kind::kScalar;
  size_t at = 0;
  std::vector<uint64_t> dims;
  std::vector<uint64_t> max_dims;  // of datasets only; empty: as dims
};
inline constexpr uint64_t kUnlimited = UINT64_MAX;

enum class ObjectWord : uint8_t { kNone, kDataset, kGroup, kDatatype };

struct Value {
  enum class Kind : uint8_t {
    kNumber,
    kQuoted,
    kWord,
    kPath,
    kNull,
    kCompound,   // {1, 2}
    kArray,      // [1, 2]
    kList,       // (1, 2)
    kReference,  // DATASET "/d" {REGION_TYPE BLOCK (0,1)-(2,3)}
  } kind = Kind::kNumber;
  // Which elements of a dataset a reference means.
  enum class Region : uint8_t { kNone, kBlocks, kPoints } region = Region::kNone;
  size_t at = 0;
  size_t end = 0;  // of the closing bracket
  Number number;
  std::string text;                     // as it is written; without quotes; of a reference the path
  ObjectWord word = ObjectWord::kNone;  // of a reference: before the path
  // The elements of a compound, array or list. Of a region: its points as lists of integers, two
  // for each block.
  std::vector<Value> items;
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
  size_t chunk_at = 0;
  std::vector<uint64_t> chunk;
  struct Filter {
    enum class Kind : uint8_t { kShuffle, kDeflate, kFletcher32 } kind = Kind::kShuffle;
    unsigned level = 0;
  };
  std::vector<Filter> filters;
};

// Whether a chunk of `count` values is more than HDF5 takes: 32 bits hold its size.
inline bool IsLargeChunk(uint64_t count, uint64_t value_bytes) {
  return count > UINT32_MAX || value_bytes * count > UINT32_MAX;
}
inline constexpr char kLargeChunk[] = "a chunk is too large: it must have less than 4 GiB";

struct Definition {
  TypeSpec type;  // H5T_NATIVE_FLOAT unless said
  SpaceSpec space;
  std::optional<LayoutSpec> layout;  // of datasets
  std::optional<Value> fill_value;
  std::optional<ValueList> values;  // may be left out of datasets only
};

// An object of the file, or an attribute of one.
struct Target {
  ObjectWord word = ObjectWord::kNone;
  bool is_joined = false;  // "/g/d/attribute": one word
  // Of DELETE: the names (of an object's link, or of the attribute) have wildcards. kQuoted: the
  // last name is taken literally.
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

#endif  // H5MIRROR_H5EDIT_AST_H_
