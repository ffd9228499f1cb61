// The rules of the grammar for values. The form of a value depends on its type, which a script need
// not name. So this reads each form that some type allows.
#ifndef H5MIRROR_H5EDIT_VALUE_PARSER_H_
#define H5MIRROR_H5EDIT_VALUE_PARSER_H_

#include <string_view>
#include <vector>

#include "h5edit/ast.h"
#include "h5edit/parser.h"
#include "h5edit/token_stream.h"

namespace h5mirror::edit {

// Each method: false, with the problem noted in the stream, where the script does not follow it.
class ValueParser {
 public:
  ValueParser(TokenStream& in, FileReader read_file) : in_(in), read_file_(read_file) {}

  // [ "DATA" ] ( "{" ... "}" | "FROM" 'file' ).
  bool List(ValueList* out);
  bool One(Value* out) { return One(0, out); }

 private:
  bool One(int depth, Value* out);
  bool Nested(int depth, Value* out);
  bool Items(int depth, std::string_view closing, size_t* end, std::vector<Value>* out);
  bool More(const Value& before);
  void SkipIndex();
  bool SkipToBrace();
  bool Reference(Value* out);
  bool Region(Value* out);
  bool Corner(Value* out);
  bool FromFile(ValueList* out);

  TokenStream& in_;
  const FileReader read_file_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_VALUE_PARSER_H_
