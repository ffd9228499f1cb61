// The history of one object, from version to version.
#ifndef H5MIRROR_H5DIFF_OBJECT_HISTORY_H_
#define H5MIRROR_H5DIFF_OBJECT_HISTORY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "h5diff/change.h"
#include "h5diff/changed_ranges.h"
#include "h5diff/find_object.h"
#include "rpc/client.h"

namespace h5mirror::tools {

struct ObjectLook;

struct ObjectEvent {
  enum class Kind : uint8_t {
    kAppeared,   // the version before does not have it, or there is none
    kFirstSeen,  // the oldest version that exists has it; older ones were dropped
    kChanged,
    kReplaced,  // another object has its path
    kWent,      // the version before has it
    kUnknown,   // the version could not be looked into: `note` says why
  };
  Kind kind = Kind::kChanged;
  v1::Version version;
  // The version that it is compared with, which is older. Those between were dropped, or could not
  // be looked into. 0: there is none, or with kUnknown.
  int64_t before = 0;
  std::string object;  // FoundObject::Text() in `version`; of kWent in the version before
  std::vector<Change> changes{};  // with kChanged and kReplaced
  std::string note{};
};

// Goes from version to version, newest first. The server tells which pages changed between two
// versions. As long as they hold no byte that what is known of the object comes from
// (h5diff/footprint.h), the object is the same. Only where one does, the older version is opened.
//
// Not thread-safe.
class ObjectHistory {
 public:
  // False: that was enough.
  using Sink = std::function<bool(ObjectEvent)>;

  // `client` must outlive it. `path`: as PathInFile() makes it.
  ObjectHistory(rpc::Client& client, std::string file, std::string path, Sink sink)
      : client_(client), file_(std::move(file)), path_(std::move(path)), sink_(std::move(sink)) {}

  // The next older version; the first one is where the look begins. Returns false once the sink
  // has had enough.
  // Errors: those of ListChanges and ReadVersion; kOutOfRange also: versions are being pruned.
  absl::StatusOr<bool> Add(const v1::Version& version);
  // There is no older version; `all`: none at all.
  void End(bool all);

  bool was_there() const { return was_there_; }
  int64_t versions_opened() const { return versions_opened_; }

 private:
  // The object in the last version that could be looked into.
  struct State {
    v1::Version version;
    bool is_there = false;
    uint64_t address = 0;  // 0: a link
    std::string text;
    Footprint footprint;
  };

  absl::StatusOr<bool> Begin(const v1::Version& version);
  absl::StatusOr<bool> Compare(const v1::Version& older, VersionPages& pages);
  // Both versions have it. `next`, `one`: of the older one.
  absl::StatusOr<bool> CompareThere(const v1::Version& older, const State& next,
                                    const ObjectLook& one, VersionPages& pages);
  bool Tell(ObjectEvent::Kind kind, std::vector<Change> changes, const std::string& text,
            int64_t before);
  bool TellUnknown(const v1::Version& version, const absl::Status& why);

  rpc::Client& client_;
  const std::string file_;
  const std::string path_;
  const Sink sink_;
  std::optional<State> state_;
  bool was_there_ = false;
  int64_t versions_opened_ = 0;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_OBJECT_HISTORY_H_
