// The rules of the grammar for types, spaces and values.
#ifndef H5MIRROR_TOOLS_H5EDIT_DEFINITION_PARSER_H_
#define H5MIRROR_TOOLS_H5EDIT_DEFINITION_PARSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/h5edit/ast.h"
#include "tools/h5edit/parser.h"
#include "tools/h5edit/token_stream.h"

namespace h5mirror::edit {

// Each method: false, with the problem noted in the stream, where the script does not follow it.
class DefinitionParser {
 public:
  DefinitionParser(TokenStream& in, FileReader read_file) : in_(in), read_file_(read_file) {}

  // "{" [type] [space] [layout] [values] "}", and that the values fit.
  bool Parse(Definition* out);
  // What an attribute must have, and cannot have.
  bool CheckAttribute(const Definition& definition);
  // [ "DATA" ] ( "{" ... "}" | "FROM" 'file' ).
  bool Values(ValueList* out);
  // "[" [range {"," range}] "]".
  bool Ranges(std::vector<IndexRange>* out);

 private:
  bool Type(TypeSpec* out);
  bool StringBody(TypeSpec* out);
  bool StringProperty(TypeSpec* out);
  bool EnumBody(TypeSpec* out);
  bool OneOf(std::initializer_list<std::string_view> words, size_t* which);
  bool Space(SpaceSpec* out);
  bool Dims(std::vector<uint64_t>* out, bool may_be_unlimited);
  bool Dimension(bool may_be_unlimited, uint64_t* out);
  bool Layout(LayoutSpec* out);
  bool Filter(LayoutSpec* out);
  bool OneValue(Value* out);
  bool ValuesFromFile(ValueList* out);
  bool Range(IndexRange* out);
  bool CheckValues(const Definition& definition);
  bool CheckLayout(const Definition& definition);

  TokenStream& in_;
  const FileReader read_file_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_TOOLS_H5EDIT_DEFINITION_PARSER_H_
