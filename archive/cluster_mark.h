// The owner of a cluster's archive: the object `cluster`, above the parts of the cells
// (docs/reference/format.md, "The owner of an archive"). Each part also has an owner of its own.
// But these would not reveal two clusters in one archive whose cells have different names.
#ifndef H5MIRROR_ARCHIVE_CLUSTER_MARK_H_
#define H5MIRROR_ARCHIVE_CLUSTER_MARK_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// The cluster's memory of its archive.
struct ClusterMemory {
  std::string id;           // 32 hex digits; empty: the cluster has had no archive
  std::string place;        // ObjectStore::Describe() of the archive
  bool is_claimed = false;  // the object with the id was found there
  bool operator==(const ClusterMemory&) const = default;
};

// Thread-safe. Waits for the archive, and for the registry.
class ClusterMark {
 public:
  static constexpr std::string_view kObject = "cluster";

  struct Settings {
    std::string cluster;       // its name for people; the first 200 bytes count
    std::string memory_place;  // the place of the memory, for messages
    // Errors of both: those of a registry. kAborted: the memory is not `before` any more.
    std::function<absl::StatusOr<ClusterMemory>()> remembered;
    std::function<absl::Status(const ClusterMemory& before, const ClusterMemory& after)> remember;
  };

  // The asker, and how much it knows about the archive by itself.
  enum class Asker : uint8_t {
    kServer,   // a server that has not looked at any part
    kNewPart,  // a cell that has had no archive
    kOwnPart,  // a cell that has found its own part there
  };

  // The finding of a check, whatever status it returns.
  enum class Verdict : uint8_t {
    kUnknown,  // a call failed
    kOwn,      // it is this cluster's
    kLacks,    // the object was there, and is missing
    kOthers,   // it is another cluster's, or of an unknown owner
    kNoMemory  // the registry failed, and not the archive
  };

  // Called before and after each call of the registry: in that time the check does not wait for the
  // archive.
  using Waits = std::function<void(bool is_begin)>;

  explicit ClusterMark(Settings settings) : settings_(std::move(settings)) {}

  // OK: `top`, the whole archive, is this cluster's. If it has no owner, and the cluster has had no
  // archive in this place, this call makes it the cluster's. If the object is missing in a place
  // that had it, a take-over has removed it: an existing part brings it back.
  // Errors: kFailedPrecondition  it is another cluster's; or the object is missing, as in a
  //                              directory on which nothing is mounted. The message names both, and
  //                              the way out.
  //         those of ObjectStore, and of Settings; these may be kFailedPrecondition, too.
  // `waits`, which may be null, and `verdict` are used within the call.
  absl::Status Check(store::ObjectStore& top, Asker asker, absl::Duration timeout,
                     const Waits& waits, Verdict* verdict);

 private:
  struct Found {
    std::string id;
    std::string cluster;  // may be empty
    absl::Status odd;     // this version does not know the object's form
  };

  absl::Status TryCheck(store::ObjectStore& top, Asker asker, absl::Duration timeout,
                        const Waits& waits, Verdict* verdict);
  // nullopt: there is none.
  static absl::StatusOr<std::optional<Found>> Read(store::ObjectStore& top, absl::Duration timeout);
  absl::Status Put(store::ObjectStore& top, const std::string& id, absl::Duration timeout);
  absl::StatusOr<ClusterMemory> Remembered(const Waits& waits, Verdict* verdict);
  absl::Status Remember(const ClusterMemory& before, const ClusterMemory& after, const Waits& waits,
                        Verdict* verdict);
  absl::Status OthersArchive(const store::ObjectStore& top, const Found& found,
                             const std::string& id) const;
  absl::Status Lacks(const store::ObjectStore& top, const std::string& id) const;
  // The object's text.
  std::string TextOf(const std::string& id) const;

  const Settings settings_;
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_CLUSTER_MARK_H_
