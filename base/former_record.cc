// Records of files that were renamed without the client.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/dirty_map.h"
#include "base/errno_status.h"
#include "base/local_record.h"
#include "base/record_files.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr std::string_view kSuffix = ".h5m";
constexpr size_t kNamesMax = 200'000;

// Names in `directory` that have a record but no file.
absl::StatusOr<std::vector<std::string>> NamesOfGoneFiles(const std::filesystem::path& directory) {
  DIR* const stream = opendir(directory.c_str());
  if (stream == nullptr) return ErrnoToStatus(errno, StrCat("open ", directory.native()));
  const absl::Cleanup closer = [stream] { closedir(stream); };
  std::unordered_set<std::string> there;
  std::vector<std::string> with_record;
  while (const dirent* const entry = readdir(stream)) {
    std::string_view name = entry->d_name;
    if (there.size() + with_record.size() >= kNamesMax) break;
    if (name.ends_with(kSuffix)) {
      name.remove_suffix(kSuffix.size());
      with_record.emplace_back(name);
    } else {
      there.emplace(name);
    }
  }
  std::erase_if(with_record, [&there](const std::string& name) { return there.contains(name); });
  return with_record;
}

bool IsThere(const std::filesystem::path& path) {
  return faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

}  // namespace

absl::StatusOr<FoundRecord> FindFormerRecord(const RecordPlace& place, std::string_view server,
                                             const FileStat& stat) {
  const std::filesystem::path directory = place.local_file.parent_path();
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfGoneFiles(directory));
  for (const std::string& name : names) {
    const std::filesystem::path former = directory / name;
    absl::StatusOr<FoundRecord> found = FindRecordOf({former, place.tag}, server);
    // If the list was cut short, or the file came meanwhile, the file may exist after all.
    if (found.ok() && found->record.stat.EqualsButName(stat) && !IsThere(former)) return found;
  }
  return absl::NotFoundError(StrCat(place.local_file.native(), " was not renamed"));
}

void RemoveLocalRecord(const RecordPlace& place) {
  const std::filesystem::path path = RecordPath(place);
  const OwnedFd directory = OpenDirectoryOf(path);
  if (directory.valid()) unlinkat(directory.get(), path.filename().c_str(), 0);
  RemoveDirtyMap(place);
  rmdir(RecordDirectory(place.local_file).c_str());
}

}  // namespace h5mirror
