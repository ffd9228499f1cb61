#include "h5edit/target_words.h"

namespace h5mirror::edit {

std::string AbsolutePath(const std::string& path) {
  std::string absolute = path.starts_with('/') ? path : "/" + path;
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

std::string PathText(const Token& token) {
  if (!token.has_quoted_part) return token.text;
  return token.text + (token.text.ends_with('/') ? "" : "/") + token.quoted_part;
}

std::string ObjectPath(const Token& token) { return AbsolutePath(PathText(token)); }

bool SplitJoined(const Token& token, std::string* object, std::string* attribute,
                 std::string* why) {
  const std::string& path = token.text;
  if (token.has_quoted_part) {
    *object = AbsolutePath(path);
    *attribute = token.quoted_part;
  } else if (const size_t twice = path.rfind("//"); twice != std::string::npos) {
    *object = AbsolutePath(path.substr(0, twice));
    *attribute = path.substr(twice + 1);
  } else if (const size_t slash = path.rfind('/'); slash != std::string::npos) {
    *object = AbsolutePath(path.substr(0, slash));
    *attribute = path.substr(slash + 1);
  } else {
    *why = "cannot tell object from attribute: expected OBJECT/ATTRIBUTE, or the two as two words";
    return false;
  }
  if (attribute->empty() || *attribute == "/") {
    *why = "the name of the attribute is empty";
    return false;
  }
  return true;
}

}  // namespace h5mirror::edit
