// The rules of the grammar for definitions: type, space, layout and values.
#ifndef H5MIRROR_H5EDIT_DEFINITION_PARSER_H_
#define H5MIRROR_H5EDIT_DEFINITION_PARSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "h5edit/ast.h"
#include "h5edit/parser.h"
#include "h5edit/token_stream.h"
#include "h5edit/value_parser.h"

namespace h5mirror::edit {

// Each method: false, with the problem noted in the stream, where the script does not follow it.
class DefinitionParser {
 public:
  DefinitionParser(TokenStream& in, FileReader read_file) : in_(in), values_(in, read_file) {}

  // "{" [type] [space] [layout] [values] "}", and that the values fit.
  bool Parse(Definition* out);
  // The parts that an attribute must have, and cannot have.
  bool CheckAttribute(const Definition& definition);
  // [ "DATA" ] ( "{" ... "}" | "FROM" 'file' ).
  bool Values(ValueList* out) { return values_.List(out); }
  // "[" [range {"," range}] "]".
  bool Ranges(std::vector<IndexRange>* out);

 private:
  bool Type(TypeSpec* out);
  bool Space(SpaceSpec* out);
  bool Dims(std::vector<uint64_t>* out, bool may_be_unlimited);
  bool Dimension(bool may_be_unlimited, uint64_t* out);
  // A layout, and the filters and the fill value that may follow it.
  bool LayoutAndMore(Definition* out);
  bool Layout(LayoutSpec* out);
  bool Filter(LayoutSpec* out);
  bool DefinedValues(Definition* out);
  bool Range(IndexRange* out);
  bool CheckValues(const Definition& definition);
  bool CheckLayout(const Definition& definition);

  TokenStream& in_;
  ValueParser values_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_DEFINITION_PARSER_H_
