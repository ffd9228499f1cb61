#include "h5edit/ast.h"

#include <iterator>

namespace h5mirror::edit {

const char* VerbName(Verb verb) {
  constexpr const char* kNames[] = {
      "CREATE",         "DELETE",         "MODIFY",        "APPEND",       "RENAME",
      "COPY",           "SHOW",           "LIST",          "CREATE GROUP", "CREATE DATASET",
      "MODIFY DATASET", "APPEND DATASET", "DELETE OBJECT", "MOVE",         "LINK HARD",
      "LINK SOFT",      "LINK EXTERNAL"};
  static_assert(std::size(kNames) == static_cast<size_t>(Verb::kLinkExternal) + 1);
  return kNames[static_cast<size_t>(verb)];
}

}  // namespace h5mirror::edit
