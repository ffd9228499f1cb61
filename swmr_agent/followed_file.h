// A file that readers of this host have open, followed by one subscription for all of them.
#ifndef H5MIRROR_SWMR_AGENT_FOLLOWED_FILE_H_
#define H5MIRROR_SWMR_AGENT_FOLLOWED_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/extent.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "h5mirror/v1/types.pb.h"
#include "swmr_agent/batched_call.h"
#include "swmr_agent/block_pool.h"
#include "swmr_agent/cut_image.h"
#include "swmr_agent/incoming_cut.h"
#include "swmr_agent/upstream.h"

namespace h5mirror::agent {

// One cut, or the version that it is.
struct SharedCut {
  v1::Snapshot snapshot;
  std::optional<v1::Version> version;  // set where `snapshot` names one
  std::shared_ptr<CutImage> image;
};

// The changes that came with a cut since the one before it.
struct CutNews {
  SharedCut cut;
  bool whole = false;
  std::vector<Extent> changed;  // without `whole`
};

class FollowedFile;

class CutListener {
 public:
  virtual ~CutListener() = default;
  // Called by the subscription's thread, for each cut in order.
  virtual void OnCut(FollowedFile& file, const CutNews& news) = 0;
  // `file` is destroyed; the last call.
  virtual void OnEnd(FollowedFile& file) = 0;
};

// Keeps the newest cut, and those that readers hold; the server holds them for us meanwhile. Has
// one thread, which reads the subscription, takes it up again after an outage where it was, and
// ends when the server has no such file. Thread-safe.
class FollowedFile {
 public:
  // The calls to the server.
  struct Subscription {
    uint64_t metadata_bytes_max = 0;
    absl::Duration tick;  // from cut to cut at least; less than the server's: that
  };

  // `listener` may be null; else it outlives this.
  FollowedFile(Upstream& upstream, std::string name, std::shared_ptr<BlockPool> pool,
               Subscription subscription, CutListener* listener = nullptr);
  ~FollowedFile();
  FollowedFile(const FollowedFile&) = delete;

  // The newest cut at the time of the call, held for `reader` unless it is a version.
  // Errors: kUnavailable  nothing is known of the newest cut now: read from the server.
  absl::StatusOr<SharedCut> OpenNewest(const std::string& reader);
  // nullptr: it is not here, or not of the file `file_id` (empty: any file of the name).
  std::optional<SharedCut> Find(int64_t cut, std::string_view file_id);
  std::optional<SharedCut> FindVersion(int64_t version);
  // False: it is not here. For listeners, of the cut that they are told of.
  bool Hold(int64_t cut, const std::string& reader);
  // False: this reader does not hold that cut here.
  bool Close(int64_t cut, const std::string& reader);
  // Ends soon; the destructor waits for that.
  void Cancel();

  // The status with which the subscription ended; OK: it goes on.
  absl::Status ended();
  absl::Time last_use();
  // Cuts that are kept, and opens of them.
  struct Count {
    size_t cuts = 0;
    size_t readers = 0;
    uint64_t cuts_seen = 0;
  };
  Count count();

 private:
  struct Held {
    SharedCut shared;
    std::set<std::string> readers;
    absl::Time last_use;
  };
  struct Newest {
    int64_t cut = 0;
    std::string file_id;
    bool has_writer = false;
    google::protobuf::Timestamp answer_time;  // the server's
  };

  void Run();
  // Reads one stream to its end.
  absl::Status Follow(rpc::Client& client);
  absl::Status Take(const v1::FollowFileResponse& message);
  void Publish(IncomingCut::Complete complete);
  // The cuts of another file, which had the name before. The server is not told: a cut of this one
  // may have the same number.
  void DropOthers(const std::string& file_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: the announced cut, or a later one, has come.
  bool HasCome(const Newest& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes unused cuts out of `held_`; returns those that the server is to be told of.
  std::vector<int64_t> DropUnneeded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseAtServer(const std::vector<int64_t>& cuts);
  absl::StatusOr<Newest> AskNewest();
  // The newest cut has become a version since it came: finds out which one.
  absl::StatusOr<SharedCut> LookForVersion(int64_t cut);
  absl::StatusOr<v1::Version> GetVersion(int64_t version);
  rpc::RangeReader RangesOfCut(const v1::Snapshot& cut);
  bool Pause(absl::Duration time);

  Upstream& upstream_;
  const std::string name_;
  const std::shared_ptr<BlockPool> pool_;
  const Subscription subscription_;
  CutListener* const listener_;
  const std::string reader_id_;
  BatchedCall<Newest> newest_call_;
  BatchedCall<SharedCut> version_call_;
  IncomingCut incoming_;  // of the thread
  // Of the thread: the last stream was refused for its credential, and the next one shows another.
  bool has_new_credential_ = false;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_following_ ABSL_GUARDED_BY(mutex_) = false;  // or it begins to
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  rpc::FollowStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;   // 0: none came yet
  std::string file_id_ ABSL_GUARDED_BY(mutex_);  // of it, and of all in `held_`
  std::map<int64_t, Held> held_ ABSL_GUARDED_BY(mutex_);
  uint64_t cuts_seen_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_use_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_FOLLOWED_FILE_H_
