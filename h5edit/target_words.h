// Which part of a word is the object, and which the attribute.
#ifndef H5MIRROR_H5EDIT_TARGET_WORDS_H_
#define H5MIRROR_H5EDIT_TARGET_WORDS_H_

#include <string>

#include "h5edit/lexer.h"

namespace h5mirror::edit {

// Splits a path: "/g/d/a" is attribute a of /g/d, "/g//a" attribute /a of /g, and "/g'b c'"
// attribute "b c" of /g. False: it has no attribute, and `why` says so.
bool SplitJoined(const Token& token, std::string* object, std::string* attribute, std::string* why);

// The path of an object, from the root. `path` may be relative to it.
std::string AbsolutePath(const std::string& path);
// A path as it is written, with its quoted component: "/g'b c'" is "/g/b c".
std::string PathText(const Token& token);
// The same, from the root.
std::string ObjectPath(const Token& token);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_TARGET_WORDS_H_
