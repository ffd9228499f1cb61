// Where references lead once an object is restored.
#ifndef H5MIRROR_H5RESTORE_MAPS_H_
#define H5MIRROR_H5RESTORE_MAPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cli/restore/restore_job.h"
#include "h5restore/references.h"
#include "h5restore/survey.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Paths of the objects of a file, found when they are first asked for: it takes a look at each.
class PathsOfFile {
 public:
  explicit PathsOfFile(hid_t file) : file_(file) {}
  // Empty: no path leads to it.
  absl::StatusOr<std::string> Find(const std::string& token);

 private:
  const hid_t file_;
  std::optional<Survey> survey_;
};

// References of a restored object. One to the object or below it leads to the same of the copy; one
// to anything else leads to what has its path in the target, if that is of the same kind and, for a
// region, large enough. Else it becomes null, and lost() tells of it.
class CopyMap final : public ReferenceMap {
 public:
  // `inside`: the paths, by token, of what is copied to `copy_path` of the target. All must outlive
  // it. A dry run makes nothing: the copy is not there.
  CopyMap(PathsOfFile& source, const absl::flat_hash_map<std::string, std::string>& inside,
          std::string copy_path, hid_t target, bool dry_run)
      : source_(source),
        inside_(inside),
        copy_path_(std::move(copy_path)),
        target_(target),
        dry_run_(dry_run) {}

  // The object whose references come next, for lost().
  void set_object(std::string path) { object_ = std::move(path); }
  absl::StatusOr<Lead> Find(const Referenced& from) override;
  std::vector<tools::LostReferences> lost() const;

 private:
  absl::StatusOr<Lead> Inside(const std::string& below) const;
  Lead Lost(std::string leads_to);

  PathsOfFile& source_;
  const absl::flat_hash_map<std::string, std::string>& inside_;
  const std::string copy_path_;
  const hid_t target_;
  const bool dry_run_;
  std::string object_;
  std::map<std::pair<std::string, std::string>, uint64_t> lost_;
};

// References of the rest of the target to what was replaced: they lead to what has its place now.
class ReplacedMap final : public ReferenceMap {
 public:
  // `gone`: the paths, by token, of objects of the old one that end with it.
  ReplacedMap(hid_t target, const absl::flat_hash_map<std::string, std::string>& gone,
              std::string new_path)
      : target_(target), gone_(gone), new_path_(std::move(new_path)) {}
  absl::StatusOr<Lead> Find(const Referenced& from) override;

 private:
  const hid_t target_;
  const absl::flat_hash_map<std::string, std::string>& gone_;
  const std::string new_path_;
};

// The objects that end when the link to `object` is removed: HDF5 frees what no hard link leads to.
// By token, their paths below it.
absl::StatusOr<absl::flat_hash_map<std::string, std::string>> GoneWith(hid_t object,
                                                                       const std::string& said);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_MAPS_H_
