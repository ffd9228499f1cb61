// Where references lead once an object is restored.
#ifndef H5MIRROR_H5RESTORE_MAPS_H_
#define H5MIRROR_H5RESTORE_MAPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "cli/restore/restore_job.h"
#include "h5restore/link_graph.h"
#include "h5restore/references.h"
#include "h5restore/survey.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// How many paths of one object are tried.
inline constexpr size_t kPathsMax = 16;

// Paths of the objects of a file, found when they are first asked for: it takes a look at each.
class PathsOfFile {
 public:
  explicit PathsOfFile(hid_t file) : file_(file) {}
  // Up to kPathsMax; empty: no path leads to it.
  absl::StatusOr<std::vector<std::string>> Find(const std::string& token);
  // Lives as long as this.
  absl::StatusOr<const LinkGraph*> Graph();

 private:
  const hid_t file_;
  std::optional<LinkGraph> graph_;
};

// An object that a reference can lead to, or why there is none: the `why` of
// tools::LostReferences.
struct Place {
  hdf5::Handle object;
  std::string why;
};

// The objects of the target's paths: now, or after a change that is only planned.
class TargetView {
 public:
  // The object at source_path gets the path `as`, and `gone` goes. All must outlive the view.
  struct Plan {
    hid_t source = H5I_INVALID_HID;
    std::string source_path;
    std::string as;
    PathsOfFile* source_paths = nullptr;
    const absl::flat_hash_map<std::string, std::string>* copied = nullptr;  // paths, by token
    const absl::flat_hash_set<std::string>* gone = nullptr;                 // tokens
  };
  explicit TargetView(hid_t target) : target_(target) {}

  void SetPlan(Plan plan) { plan_ = std::move(plan); }
  void SetDone() { plan_.reset(); }

  // For an object that is planned to be copied it gives the original, which is of the source.
  absl::StatusOr<Place> Find(const Referenced& from, const std::string& path) const;
  // Whether an object that is there stays there.
  absl::StatusOr<bool> KeepsObjectAt(const std::string& path) const;

 private:
  absl::StatusOr<Place> FindObject(const std::string& path, H5I_type_t kind) const;
  absl::StatusOr<Place> FindInCopy(const std::string& path, H5I_type_t kind) const;
  Place FindNow(const std::string& path, H5I_type_t kind) const;
  bool IsOfCopy(const std::string& path) const;

  const hid_t target_;
  std::optional<Plan> plan_;
};

// References that become null: by object, by their old target, and by the reason.
class Losses {
 public:
  // The object whose references come next.
  void set_object(std::string path) { object_ = std::move(path); }
  Lead Add(std::string leads_to, std::string why);
  // The same, and remembers an object that is lost with any region. Columns of references have
  // the same objects again and again.
  Lead AddObject(const Referenced& from, std::string leads_to, std::string why);
  // Counts one more of an object that is known from AddObject(). Else false.
  bool AddKnown(const std::string& token);
  void AppendTo(bool removed, std::vector<tools::LostReferences>* all) const;

 private:
  std::string object_;
  std::map<std::tuple<std::string, std::string, std::string>, uint64_t> counts_;
  absl::flat_hash_map<std::string, std::pair<std::string, std::string>> known_;  // by token
};

// References of a restored object. One to the object or below it leads to the same of the copy; one
// to another object leads to the object with one of its paths in the target, if that is of the
// same kind and, for a region, large enough. Else it becomes null.
class CopyMap final : public ReferenceMap {
 public:
  // `inside`: the paths, by token, of objects copied to `copy_path` of the target. All must outlive
  // it. A dry run makes nothing: the copy is not there.
  CopyMap(PathsOfFile& source, const absl::flat_hash_map<std::string, std::string>& inside,
          std::string copy_path, hid_t target, const TargetView& view, bool dry_run)
      : source_(source),
        inside_(inside),
        copy_path_(std::move(copy_path)),
        target_(target),
        view_(view),
        dry_run_(dry_run) {}

  absl::StatusOr<Lead> Find(const Referenced& from) override;
  Losses& losses() { return losses_; }

 private:
  absl::StatusOr<Lead> Inside(const Referenced& from, const std::string& below) const;

  PathsOfFile& source_;
  const absl::flat_hash_map<std::string, std::string>& inside_;
  const std::string copy_path_;
  const hid_t target_;
  const TargetView& view_;
  const bool dry_run_;
  Losses losses_;
};

// References of the rest of the target to replaced objects: they lead to the objects that take
// their places, or become null. HDF5 frees the old objects, and uses the space for others.
class ReplacedMap final : public ReferenceMap {
 public:
  // `gone` are tokens below `old`, which is at `path`.
  ReplacedMap(const absl::flat_hash_set<std::string>& gone, const LinkGraph& graph, std::string old,
              std::string path, const TargetView& view)
      : gone_(gone), graph_(graph), old_(std::move(old)), path_(std::move(path)), view_(view) {}

  absl::StatusOr<Lead> Find(const Referenced& from) override;
  Losses& losses() { return losses_; }
  // References that change, so far.
  uint64_t changes() const { return changes_; }

 private:
  const absl::flat_hash_set<std::string>& gone_;
  const LinkGraph& graph_;
  const std::string old_;
  const std::string path_;
  const TargetView& view_;
  Losses losses_;
  uint64_t changes_ = 0;
};

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_MAPS_H_
