// The rules of the grammar for types.
#ifndef H5MIRROR_H5EDIT_TYPE_PARSER_H_
#define H5MIRROR_H5EDIT_TYPE_PARSER_H_

#include <optional>

#include "h5edit/ast.h"
#include "h5edit/token_stream.h"
#include "h5edit/values.h"

namespace h5mirror::edit {

// Each method: false, with the problem noted in the stream, where the script does not follow it.
class TypeParser {
 public:
  explicit TypeParser(TokenStream& in) : in_(in) {}

  // Whether a definition that begins with this has its type first.
  static bool Starts(const Token& token);
  bool Parse(TypeSpec* out);

 private:
  bool Type(int depth, TypeSpec* out);
  bool Predefined(TypeSpec* out);
  bool Committed(TypeSpec* out);
  bool StringBody(TypeSpec* out);
  bool StringProperty(TypeSpec* out);
  bool EnumBody(TypeSpec* out);
  bool EnumMemberOf(const ElementType& base, TypeSpec* out);
  bool CompoundBody(int depth, TypeSpec* out);
  bool ArrayBody(int depth, TypeSpec* out);
  bool ListBody(int depth, TypeSpec* out);
  bool OpaqueBody(TypeSpec* out);
  bool ReferenceBody(TypeSpec* out);
  bool MemberName(std::string* out);

  TokenStream& in_;
};

// Opaque types without a size take that of their first value.
//
// Unset: done. Else the problem, at the type: there is no value to take a size from.
std::optional<ValueProblem> TakeOpaqueSizes(const ValueList* values, TypeSpec* type);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_TYPE_PARSER_H_
