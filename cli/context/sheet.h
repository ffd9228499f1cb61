// Facts about one thing, as people read them.
#ifndef H5MIRROR_CLI_CONTEXT_SHEET_H_
#define H5MIRROR_CLI_CONTEXT_SHEET_H_

#include <string>
#include <string_view>

#include "base/strings.h"
#include "cli/context/context.h"

namespace h5mirror::tools {

// "name: value" lines, aligned; nothing with --json. A fact without a value gets no line.
class Sheet {
 public:
  explicit Sheet(Context& context) : context_(context) {}
  void Line(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    const std::string label = StrCat(name, ":");
    context_.Say(StrCat(label, std::string(label.size() < 14 ? 14 - label.size() : 1, ' '), value));
  }

 private:
  Context& context_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_SHEET_H_
