// The state that the parts of a server's archive share: how calls go, their pace, and their end. A
// server of one root has one part. A server of a cluster has a part for each of its cells.
#ifndef H5MIRROR_ARCHIVE_ARCHIVE_LINE_H_
#define H5MIRROR_ARCHIVE_ARCHIVE_LINE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "archive/call_watch.h"
#include "archive/cluster_mark.h"
#include "archive/pace.h"

namespace h5mirror::archive {

// Thread-safe. Waits for no network.
class ArchiveLine {
 public:
  // `rate`: bytes a second of all parts' background work together; 0: no limit.
  ArchiveLine(uint64_t rate, CallWatch::Limits limits)
      : pace_(rate, RetryClock::Steady()), watch_(limits, stopped_) {}

  Pace& pace() { return pace_; }
  CallWatch& watch() { return watch_; }

  // ---- The end of calls. A part's calls end once its flag is set. ----

  // `flag` must live until Leave().
  void Join(std::atomic<bool>* flag) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(std::atomic<bool>* flag) ABSL_LOCKS_EXCLUDED(mutex_);
  // The part that joined with `flag`, and the owner id of the part that its root keeps.
  struct OwnPart {
    std::string part;
    std::string id;
  };
  void NoteOwn(std::atomic<bool>* flag, OwnPart own) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<OwnPart> OwnParts() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the calls of all parts for good: the server stops.
  void StopAll() ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_stopped() const { return stopped_; }
  // True: the calls of one part end. False: they may go on, unless the server stops.
  void SetBrokenOff(std::atomic<bool>* flag, bool is_broken_off) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Parts that are not their roots' ----

  // Notes a fault of one part; says nothing about the others. `part`: "cells/lab".
  void SetFault(const std::string& part, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void ClearFault(const std::string& part) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- Whose the archive of a cluster is ----

  void SetCluster(std::shared_ptr<ClusterMark> mark) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: this is not the archive of a cluster.
  std::shared_ptr<ClusterMark> cluster() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `every` has passed since a check last found the cluster's own object.
  bool MustCheckCluster(absl::Duration every) ABSL_LOCKS_EXCLUDED(mutex_);
  // If the archive is not the cluster's, that is a fault of all parts.
  void NoteCluster(const absl::Status& checked, ClusterMark::Verdict verdict)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether there is that fault. Then nothing is archived.
  bool IsRefused() ABSL_LOCKS_EXCLUDED(mutex_);

  // The standing by the watch. If no calls fail: the fault of the first part that has one.
  ArchiveStanding Standing() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether calls of all parts fail.
  bool IsAway() { return !watch_.Standing().error.empty(); }

 private:
  struct Fault {
    std::string error;
    absl::Time since;
  };

  std::atomic<bool> stopped_{false};
  Pace pace_;
  CallWatch watch_;
  absl::Mutex mutex_;
  std::set<std::atomic<bool>*> flags_ ABSL_GUARDED_BY(mutex_);
  std::map<std::atomic<bool>*, OwnPart> own_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Fault> faults_ ABSL_GUARDED_BY(mutex_);  // by part
  std::shared_ptr<ClusterMark> cluster_ ABSL_GUARDED_BY(mutex_);
  absl::Time cluster_checked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // steady
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_ARCHIVE_LINE_H_
