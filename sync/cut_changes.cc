#include "sync/cut_changes.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/human.h"
#include "base/strings.h"
#include "cli/output/text.h"

namespace h5mirror::tools {
namespace {

using How = ChangedObject::How;

constexpr size_t kPathsShown = 3;
constexpr size_t kObjectsListed = 100;

constexpr struct {
  How how;
  char sign;
  const char* name;
} kHows[] = {{How::kAdded, '+', "added"},
             {How::kRemoved, '-', "removed"},
             {How::kMoved, '>', "moved"},
             {How::kChanged, '~', "changed"}};

// One is told by its path, more by their number: "+/run/new", "+2 groups".
void AddCounted(const CutChanges& changes, How how, char sign, std::vector<std::string>& words) {
  std::map<std::string, std::vector<const ChangedObject*>> by_kind;
  for (const ChangedObject& each : changes.objects) {
    if (each.how == how) by_kind[how == How::kMoved ? "object" : each.object].push_back(&each);
  }
  for (const auto& [kind, found] : by_kind) {
    const std::string text =
        found.size() == 1 ? Printable(found.front()->path) : StrCat(found.size(), " ", kind, "s");
    words.push_back(StrCat(std::string(1, sign), text));
  }
}

void AddPaths(const CutChanges& changes, std::vector<std::string>& words) {
  size_t count = 0;
  for (const ChangedObject& each : changes.objects) {
    if (each.how != How::kChanged || ++count > kPathsShown) continue;
    words.push_back(StrCat("~", Printable(each.path)));
  }
  if (count > kPathsShown) words.push_back(StrCat("(", count - kPathsShown, " more)"));
}

}  // namespace

std::string CutChangesText(const CutChanges& changes) {
  std::vector<std::string> words;
  for (const auto& each : kHows) {
    if (each.how != How::kChanged) AddCounted(changes, each.how, each.sign, words);
  }
  AddPaths(changes, words);
  if (changes.note.empty()) {
    return words.empty() ? "no object changed" : absl::StrJoin(words, " ");
  }
  const uint64_t metadata = std::min(changes.metadata_bytes, changes.changed_bytes);
  words.push_back(StrCat("in ", HumanBytes(changes.changed_bytes), ", ", HumanBytes(metadata),
                         " of metadata (not all objects are told: ", changes.note, ")"));
  return absl::StrJoin(words, " ");
}

Json CutChangesToJson(const CutChanges& changes) {
  Json counts = Json::object(), objects = Json::array();
  for (const auto& how : kHows) {
    const auto is_such = [&](const ChangedObject& each) { return each.how == how.how; };
    counts[how.name] = std::count_if(changes.objects.begin(), changes.objects.end(), is_such);
    for (const ChangedObject& each : changes.objects) {
      if (!is_such(each) || objects.size() == kObjectsListed) continue;
      Json object{{"change", how.name}, {"path", each.path}, {"object", each.object}};
      if (how.how == How::kMoved) object["old_path"] = each.old_path;
      if (how.how == How::kChanged) object["what"] = each.what;
      objects.push_back(std::move(object));
    }
  }
  return Json{{"since_cut", changes.since_cut},
              {"changed_bytes", changes.changed_bytes},
              {"metadata_bytes", changes.metadata_bytes},
              {"complete", changes.note.empty()},
              {"note", changes.note.empty() ? Json(nullptr) : Json(changes.note)},
              {"counts", std::move(counts)},
              {"objects", std::move(objects)}};
}

}  // namespace h5mirror::tools
