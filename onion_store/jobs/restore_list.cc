// Lists the files of which an archive has a copy.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/pages/listed_copies.h"
#include "onion_store/restore_root.h"
#include "onion_store/shared/object_cache.h"
#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kFiles = "files/";
constexpr size_t kShownDigits = 8;

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

// The newest copy that is whole, as far as the archive's listing tells. A list may exist without
// its parts if a server that had lost the file put it late. If no copy is whole, the newest copy
// with the file's name tells what is lost.
absl::StatusOr<RestorableFile> NewestOf(ObjectStore& archive, const FileId& id,
                                        const ListedCopies& listed) {
  RestorableFile file;
  if (listed.lists().empty()) {
    file.status = absl::NotFoundError(StrCat("the archive has segments of the file ", HexOf(id),
                                             ", and no whole copy of its head and index"));
  }
  for (auto each = listed.lists().rbegin(); each != listed.lists().rend(); ++each) {
    const auto copy = GetCopyList(archive, each->second);
    const bool is_lost = absl::IsDataLoss(copy.status()) || absl::IsNotFound(copy.status());
    if (!copy.ok() && !is_lost) return copy.status();
    const std::string lost = copy.ok() ? listed.LostPart(*copy) : "";
    if (copy.ok() && lost.empty()) return Described(*copy);
    if (copy.ok() && file.name.empty()) {
      file = Described(*copy);
      file.status = absl::DataLossError(
          StrCat("its copy lacks the object ", lost, ", or that has another length"));
    } else if (file.status.ok()) {
      file.status = copy.status();
    }
  }
  file.file_id = id;
  return file;
}

// Calls `take` with the listed objects of each file. Names come in order, so one file is in memory
// at a time.
absl::Status ForEachFile(
    ObjectStore& archive, std::string_view begin,
    absl::FunctionRef<absl::Status(const FileId& id, const ListedCopies& listed)> take) {
  std::optional<FileId> current;
  ListedCopies listed;
  std::string next;
  do {
    H5M_ASSIGN_OR_RETURN(const ObjectPage page,
                         archive.List(begin, next, kObjectListMax, ObjectCache::kGetTimeout));
    for (const ObjectInfo& object : page.objects) {
      const auto id = ParseHex16(std::string_view(object.name).substr(kFiles.size(), 32));
      if (!id.ok()) continue;
      if (current && *current != *id) H5M_RETURN_IF_ERROR(take(*current, listed));
      if (current != *id) listed = ListedCopies();
      current = *id;
      listed.Note(*id, object);
    }
    next = page.next;
  } while (!next.empty());
  return current ? take(*current, listed) : absl::OkStatus();
}

// Names already given, and the directories above them.
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

// If two names cannot both exist, the name of the newer copy stays.
void MakeNamesDiffer(std::vector<RestorableFile>* files) {
  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) {
    return std::tie(b.time, a.name, a.file_id) < std::tie(a.time, b.name, b.file_id);
  });
  TakenNames taken;
  for (RestorableFile& file : *files) {
    if (!file.status.ok() || taken.Take(file.name)) continue;
    const std::string suffix = StrCat(".restored-", HexOf(file.file_id).substr(0, kShownDigits));
    // If a directory of the name is a file by now, the directory gets another name.
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
  std::vector<RestorableFile> files;
  H5M_RETURN_IF_ERROR(ForEachFile(
      archive, kFiles, [&](const FileId& id, const ListedCopies& listed) -> absl::Status {
        H5M_ASSIGN_OR_RETURN(RestorableFile file, NewestOf(archive, id, listed));
        files.push_back(std::move(file));
        return absl::OkStatus();
      }));
  MakeNamesDiffer(&files);
  return files;
}

absl::StatusOr<RestorableFile> FindRestorable(ObjectStore& archive, const FileId& file_id) {
  ListedCopies found;
  H5M_RETURN_IF_ERROR(
      ForEachFile(archive, CopyPrefix(file_id), [&](const FileId&, const ListedCopies& listed) {
        found = listed;
        return absl::OkStatus();
      }));
  return NewestOf(archive, file_id, found);
}

}  // namespace h5mirror::store
