// Whose the archive of a cluster is: its object `cluster`, above the parts of the cells
// (docs/reference/format.md, "The owner of an archive"). Each part has an owner of its own, so that
// two clusters without a cell of the same name would not notice each other by those.
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

// What a cluster remembers of its archive.
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
    std::string cluster;       // for people, who may know two: the first 200 bytes count
    std::string memory_place;  // where the cluster remembers it, for messages
    // Errors of both: those of a registry. kAborted: it is not `before` any more.
    std::function<absl::StatusOr<ClusterMemory>()> remembered;
    std::function<absl::Status(const ClusterMemory& before, const ClusterMemory& after)> remember;
  };

  // What asks, and knows by itself that the archive is the one that it was.
  enum class Asker : uint8_t {
    kServer,   // nobody has looked further
    kNewPart,  // a cell that has had no archive
    kOwnPart,  // a cell that has found its own part there
  };

  // What a check has found, whatever it says of that.
  enum class Verdict : uint8_t {
    kUnknown,  // a call failed
    kOwn,      // it is this cluster's
    kLacks,    // it lacks the object that was there
    kOthers,   // it is another cluster's, or nobody knows whose
    kNoMemory  // the registry failed, and not the archive
  };

  // Told before each call of the registry, and after it: the archive is not waited for.
  using Waits = std::function<void(bool is_begin)>;

  explicit ClusterMark(Settings settings) : settings_(std::move(settings)) {}

  // OK: `top`, the whole archive, is this cluster's. It becomes so where it is of none, and the
  // cluster has had no archive in this place. Where the object lacks in the place that had it, a
  // part that is there brings it back: a take-over took it away.
  // Errors: kFailedPrecondition  it is another cluster's; or it lacks what was there, as a
  //                              directory does on which nothing is mounted. The message names
  //                              both and the way out.
  //         those of ObjectStore, and of Settings; a kFailedPrecondition may be one of these, too.
  // `waits`, which may be null, and `verdict` are used within the call.
  absl::Status Check(store::ObjectStore& top, Asker asker, absl::Duration timeout,
                     const Waits& waits, Verdict* verdict);

 private:
  struct Found {
    std::string id;
    std::string cluster;  // may be empty
    absl::Status odd;     // the object is none of this version
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
