#include "tests/crash/check_objects.h"

#include <set>
#include <string>
#include <vector>

#include "archive/directory_store.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

struct Named {
  std::set<std::string> any, archived;
  std::set<std::string> copied;  // prefixes of the names of files' copies
};

// Whether an object is of a copy of an existing file. The rest of a broken-off copy counts too: the
// next copy deletes it.
bool IsOfCopy(const Named& named, const std::string& object) {
  const size_t end = object.find("/copy-");
  return end != object.npos && named.copied.contains(object.substr(0, end));
}

// Collects the objects that the indexes below `directory` name.
absl::Status Collect(const SqliteVfs& vfs, EnvTree& tree, const std::string& directory,
                     Named* named) {
  H5M_ASSIGN_OR_RETURN(const auto entries, tree.List(directory));
  for (const DirectoryEntry& entry : entries) {
    const std::string inner = StrCat(directory, directory.empty() ? "" : "/", entry.name);
    if (entry.kind == EntryKind::kDirectory && inner != kArchiveDirectory) {
      H5M_RETURN_IF_ERROR(Collect(vfs, tree, inner, named));
    }
    if (entry.name != "index" || entry.kind != EntryKind::kFile) continue;
    H5M_ASSIGN_OR_RETURN(const auto index, VersionIndex::Open(vfs, tree, directory));
    H5M_ASSIGN_OR_RETURN(const auto rows, index->ListArchived());
    H5M_ASSIGN_OR_RETURN(const auto copy, index->FindCopy());
    H5M_ASSIGN_OR_RETURN(const FileRow file, index->ReadFileRow());
    if (copy) named->copied.insert(StrCat("files/", HexOf(file.file_id)));
    for (const ArchivedSegment& row : rows) {
      named->any.insert(row.object);
      // When a file is deleted, its objects go first.
      const bool is_going = directory.find("/gone-") != directory.npos;
      if (row.state == ArchiveState::kArchived && !is_going) named->archived.insert(row.object);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckObjects(Env& env) {
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree("/"));
  const SqliteVfs vfs(*tree);
  Named named;
  H5M_RETURN_IF_ERROR(Collect(vfs, *tree, "", &named));
  archive::DirectoryStore store(*env.OpenTree("/"), kArchiveDirectory, "/arc");
  std::set<std::string> there;
  for (std::string next;;) {
    H5M_ASSIGN_OR_RETURN(const ObjectPage page, store.List("", next, 100, absl::Seconds(1)));
    for (const ObjectInfo& object : page.objects) there.insert(object.name);
    next = page.next;
    if (next.empty()) break;
  }
  for (const std::string& object : there) {
    if (named.any.contains(object) || IsOfCopy(named, object)) continue;
    return absl::FailedPreconditionError(StrCat("no index names the object ", object));
  }
  for (const std::string& object : named.archived) {
    if (there.contains(object)) continue;
    return absl::FailedPreconditionError(StrCat("the object ", object, " is not there"));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
