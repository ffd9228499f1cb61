// The cuts of family, split and multi files that readers of this process have open. The reader of
// the first member finds the cut; the others are opened at the same one, as long as that reader is
// open.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_OPEN_GROUPS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_OPEN_GROUPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/whole_cut.h"

namespace h5mirror::vfd {

// The members of one cut, at one server. Owned by the reader of the first one.
class OpenGroup {
 public:
  OpenGroup(std::string server, const rpc::WholeCut& cut);

 private:
  friend class OpenGroups;
  const std::string server_;
  const std::string first_;
  std::map<std::string, int64_t> versions_;  // by name
};

// Thread-safe. Holds no group open.
class OpenGroups {
 public:
  static OpenGroups& Get();

  void Add(const std::shared_ptr<const OpenGroup>& group) ABSL_LOCKS_EXCLUDED(mutex_);
  // The version of a member other than the first, in the newest open cut that holds it. 0: no open
  // cut holds it.
  int64_t VersionOf(const std::string& server, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // True: a cut is open whose first member is `first`.
  bool HasFirst(const std::string& server, const std::string& first) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Newest first.
  std::vector<std::shared_ptr<const OpenGroup>> Open() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::vector<std::weak_ptr<const OpenGroup>> groups_ ABSL_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OPEN_GROUPS_H_
