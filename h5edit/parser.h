// From a script's words to its statements: the grammar of docs/reference/h5edit.md.
#ifndef H5MIRROR_H5EDIT_PARSER_H_
#define H5MIRROR_H5EDIT_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "h5edit/ast.h"
#include "h5edit/source.h"

namespace h5mirror::edit {

// Where `DATA FROM 'file'` reads: the text of a file, or false and why not.
using FileReader = bool (*)(const std::string& path, std::string* text, std::string* error);
bool ReadTextFile(const std::string& path, std::string* text, std::string* error);
// The same of what is open, and named so in errors.
bool ReadText(int fd, const std::string& name, std::string* text, std::string* error);

// All statements of a script, or false and its first problem. Checks what the script alone shows:
// grammar, types, number and class and range of values.
bool Parse(const Source& source, FileReader read_file, std::vector<Statement>* statements,
           Problem* problem);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_PARSER_H_
