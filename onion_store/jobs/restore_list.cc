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

// The prefixes of whole copies, by file and number.
using Copies = std::map<FileId, std::map<uint64_t, std::string>>;

void Note(const std::string& name, Copies* copies) {
  if (!name.ends_with(kList)) return;
  const std::string prefix = name.substr(0, name.size() - kList.size());
  const auto number = NumberOfCopy(prefix);
  const auto id = ParseHex16(prefix.substr(kFiles.size(), 32));
  if (number.ok() && id.ok() && prefix.starts_with(CopyPrefix(*id))) {
    (*copies)[*id][*number] = prefix;
  }
}

absl::StatusOr<Copies> FindCopies(ObjectStore& archive) {
  Copies copies;
  std::string next;
  do {
    H5M_ASSIGN_OR_RETURN(const ObjectPage page,
                         archive.List(kFiles, next, kObjectListMax, ObjectCache::kGetTimeout));
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

// A name that was given twice stays with the newest copy.
void MakeNamesDiffer(std::vector<RestorableFile>* files) {
  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, b.time, a.file_id) < std::tie(b.name, a.time, b.file_id);
  });
  std::set<std::string> taken;
  for (RestorableFile& file : *files) {
    if (!file.status.ok() || taken.insert(file.name).second) continue;
    file.name = StrCat(file.name, ".restored-", HexOf(file.file_id).substr(0, kShownDigits));
    const bool is_free = CheckName(file.name).ok() && taken.insert(file.name).second;
    if (!is_free) file.status = absl::AlreadyExistsError(StrCat(file.name, ": the name is taken"));
  }
}

}  // namespace

absl::StatusOr<std::vector<RestorableFile>> ListRestorable(ObjectStore& archive) {
  H5M_ASSIGN_OR_RETURN(const Copies copies, FindCopies(archive));
  std::vector<RestorableFile> files;
  for (const auto& [id, prefixes] : copies) {
    H5M_ASSIGN_OR_RETURN(RestorableFile file, NewestOf(archive, id, prefixes));
    files.push_back(std::move(file));
  }
  MakeNamesDiffer(&files);
  return files;
}

}  // namespace h5mirror::store
