#include "h5edit/ast.h"

namespace h5mirror::edit {

const char* VerbName(Verb verb) {
  switch (verb) {
    case Verb::kCreateAttribute:
      return "CREATE";
    case Verb::kDeleteAttribute:
      return "DELETE";
    case Verb::kModifyAttribute:
      return "MODIFY";
    case Verb::kAppendAttribute:
      return "APPEND";
    case Verb::kRenameAttribute:
      return "RENAME";
    case Verb::kCopyAttribute:
      return "COPY";
    case Verb::kShow:
      return "SHOW";
    case Verb::kList:
      return "LIST";
    case Verb::kCreateGroup:
      return "CREATE GROUP";
    case Verb::kCreateDataset:
      return "CREATE DATASET";
    case Verb::kModifyDataset:
      return "MODIFY DATASET";
    case Verb::kAppendDataset:
      return "APPEND DATASET";
    case Verb::kDeleteObject:
      return "DELETE OBJECT";
    case Verb::kMoveObject:
      return "MOVE";
    case Verb::kLinkHard:
      return "LINK HARD";
    case Verb::kLinkSoft:
      return "LINK SOFT";
    case Verb::kLinkExternal:
      return "LINK EXTERNAL";
  }
  return "";
}

}  // namespace h5mirror::edit
