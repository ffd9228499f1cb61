// Names with wildcards.
#ifndef H5MIRROR_H5EDIT_PATTERN_H_
#define H5MIRROR_H5EDIT_PATTERN_H_

#include <string>
#include <string_view>
#include <vector>

namespace h5mirror::edit {

// Whether `pattern` is that of `name`: '*' stands for any characters, '?' for one.
bool IsMatch(std::string_view pattern, std::string_view name);
bool HasWildcards(std::string_view text);

// The components of a path or pattern: "/a//b/" is a and b.
std::vector<std::string> ComponentsOf(std::string_view path);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_PATTERN_H_
