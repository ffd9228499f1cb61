// Which files an archive has a copy of.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/restore_root.h"
#include "onion_store/shared/object_cache.h"
#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kFiles = "files/";
constexpr std::string_view kList = "-list";
constexpr size_t kShownDigits = 8;

// The prefixes of whole copies, by file and number. Files without a copy are there too.
using Copies = std::map<FileId, std::map<uint64_t, std::string>>;

void Note(const std::string& name, Copies* copies) {
  const auto id = ParseHex16(name.substr(kFiles.size(), 32));
  if (!id.ok()) return;
  auto& of_file = (*copies)[*id];
  if (!name.ends_with(kList)) return;
  const std::string prefix = name.substr(0, name.size() - kList.size());
  const auto number = NumberOfCopy(prefix);
  if (number.ok() && prefix.starts_with(CopyPrefix(*id))) of_file[*number] = prefix;
}

absl::StatusOr<Copies> FindCopies(ObjectStore& archive, std::string_view begin) {
  Copies copies;
  std::string next;
  do {
    H5M_ASSIGN_OR_RETURN(const ObjectPage page,
                         archive.List(begin, next, kObjectListMax, ObjectCache::kGetTimeout));
    for (const ObjectInfo& object : page.objects) Note(object.name, &copies);
    next = page.next;
  } while (!next.empty());
  return copies;
}

RestorableFile Described(const FileCopy& copy) {
  RestorableFile file;
  file.file_id = copy.file_id;
  file.name = copy.name;
  file.prefix = copy.prefix;
  file.time = copy.time;
  file.version_time = copy.version_time;
  file.version = copy.newest().version;
  file.versions = copy.versions;
  file.size_bytes = copy.newest().size_bytes;
  file.copy_bytes = copy.index.object_bytes();
  for (const CopyHead& head : copy.heads) {
    for (const CopyLayer& layer : head.layers) file.copy_bytes += layer.object_bytes();
  }
  return file;
}

// The newest copy whose list can be read.
absl::StatusOr<RestorableFile> NewestOf(ObjectStore& archive, const FileId& id,
                                        const std::map<uint64_t, std::string>& prefixes) {
  RestorableFile file;
  if (prefixes.empty()) {
    file.status = absl::NotFoundError(StrCat("the archive has segments of the file ", HexOf(id),
                                             ", and no whole copy of its head and index"));
  }
  for (auto each = prefixes.rbegin(); each != prefixes.rend(); ++each) {
    const auto copy = GetCopyList(archive, each->second);
    if (copy.ok()) return Described(*copy);
    const bool is_lost = absl::IsDataLoss(copy.status()) || absl::IsNotFound(copy.status());
    if (!is_lost) return copy.status();
    if (file.status.ok()) file.status = copy.status();
  }
  file.file_id = id;
  return file;
}

// Names that are given, and the directories above them.
class TakenNames {
 public:
  bool Take(const std::string& name) {
    if (names_.contains(name) || directories_.contains(name)) return false;
    std::vector<std::string> above;
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      above.push_back(name.substr(0, slash));
      if (names_.contains(above.back())) return false;
    }
    names_.insert(name);
    directories_.insert(above.begin(), above.end());
    return true;
  }

 private:
  std::set<std::string> names_;
  std::set<std::string> directories_;
};

// Of two names that cannot both be, the one of the newest copy stays.
void MakeNamesDiffer(std::vector<RestorableFile>* files) {
  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) {
    return std::tie(b.time, a.name, a.file_id) < std::tie(a.time, b.name, b.file_id);
  });
  TakenNames taken;
  for (RestorableFile& file : *files) {
    if (!file.status.ok() || taken.Take(file.name)) continue;
    const std::string suffix = StrCat(".restored-", HexOf(file.file_id).substr(0, kShownDigits));
    // Where a directory of the name is a file by now, the directory gets another name.
    std::string other = StrCat(file.name, suffix);
    bool is_free = CheckName(other).ok() && taken.Take(other);
    for (size_t slash = file.name.find('/'); !is_free && slash != file.name.npos;
         slash = file.name.find('/', slash + 1)) {
      other = StrCat(file.name.substr(0, slash), suffix, file.name.substr(slash));
      is_free = CheckName(other).ok() && taken.Take(other);
    }
    if (!is_free) file.status = absl::AlreadyExistsError(StrCat(file.name, ": the name is taken"));
    if (is_free) file.name = std::move(other);
  }
  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.file_id) < std::tie(b.name, b.file_id);
  });
}

}  // namespace

absl::StatusOr<std::vector<RestorableFile>> ListRestorable(ObjectStore& archive) {
  H5M_ASSIGN_OR_RETURN(const Copies copies, FindCopies(archive, kFiles));
  std::vector<RestorableFile> files;
  for (const auto& [id, prefixes] : copies) {
    H5M_ASSIGN_OR_RETURN(RestorableFile file, NewestOf(archive, id, prefixes));
    files.push_back(std::move(file));
  }
  MakeNamesDiffer(&files);
  return files;
}

absl::StatusOr<RestorableFile> FindRestorable(ObjectStore& archive, const FileId& file_id) {
  H5M_ASSIGN_OR_RETURN(Copies copies, FindCopies(archive, CopyPrefix(file_id)));
  return NewestOf(archive, file_id, copies[file_id]);
}

}  // namespace h5mirror::store
