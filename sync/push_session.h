// One session that brings a closed local file, or parts of it, to the server with one commit.
#ifndef H5MIRROR_SYNC_PUSH_SESSION_H_
#define H5MIRROR_SYNC_PUSH_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/dirty_map.h"
#include "base/extent.h"
#include "base/extent_set.h"
#include "base/hex.h"
#include "base/random.h"
#include "h5mirror/v1/mirror.pb.h"
#include "rpc/client.h"
#include "sync/local_file.h"

namespace h5mirror::tools {

struct PushRequest {
  std::string verb = "push";         // for messages
  std::string program = "h5mirror";  // that the version is told to be of
  std::string name;                  // under the server's root
  std::string server;                // for the record, as the user would configure it
  std::string tag;                   // of the record: RecordPlace::tag
  Bytes16 file_id{};                 // the server's, or all zero where it has no such file
  // Or INTENT_REPLACE, INTENT_RESYNC; or INTENT_RESUME: the rest of a session, by a dirty map.
  v1::Intent intent = v1::INTENT_UPLOAD;
  int64_t base_cut = 0;         // INTENT_RESYNC, INTENT_RESUME
  int64_t base_cut_newest = 0;  // INTENT_RESUME: DirtyMap::cut_newest
  Bytes16 predecessor{};        // INTENT_RESUME: DirtyMap::session_id
  std::string comment;
  // Not empty: the record gets kDiverged with this text, because the server's new state is only
  // temporary.
  std::string diverged_detail;
};

struct PushResult {
  int64_t cut = 0;
  int64_t version = 0;
  uint64_t sent_bytes = 0;  // of the file
};

// Open(), any number of Truncate(), Send() and KeepAlive(), Commit(). Before the commit the record
// says kBehind and names the commit. Where the bytes that the server lacks without it are known,
// the record also names a dirty map of them. The next open finds out whether the commit arrived,
// and goes on from there. If this is destroyed before the commit, the server drops the received
// bytes. Not thread-safe. `client`, `file` and `request` must outlive it.
//
// Errors: kFailedPrecondition  another session holds the lease, or the server has another file:
//                              nothing was changed.
//         kAborted             the local file changed while it was read, or the server's since it
//                              was compared: nothing was changed, try again.
//         others               as in Mirror.MirrorFile.
class PushSession {
 public:
  PushSession(rpc::Client& client, const LocalFile& file, const PushRequest& request)
      : client_(client), file_(file), request_(request), session_id_(RandomBytes16()) {}

  absl::Status Open();
  absl::Status Truncate(uint64_t size_bytes);
  // The local file's bytes, up to its end. They may go out later, many pieces in one frame.
  absl::Status Send(Extent extent);
  absl::Status KeepAlive();
  // Waits until all is durable, and writes the record (kClean).
  absl::StatusOr<PushResult> Commit();

 private:
  absl::Status CheckRelation();
  // True: only the difference is sent, and the server's file stays in its generation.
  bool sends_difference() const {
    return request_.intent == v1::INTENT_RESYNC || request_.intent == v1::INTENT_RESUME;
  }
  absl::Status Flush();
  absl::Status SendBarrier();
  // The bytes that the server lacks if the commit does not arrive; unset: they are not known.
  std::optional<DirtyMap> MakeDirtyMap() const;
  absl::Status WriteBehind();
  absl::Status WriteClean();
  LocalRecord MakeRecord() const;
  // The cut of several files that the local file was closed at, if it is still as then.
  std::optional<RecordGroup> GroupOfClose() const;
  RecordPlace place() const { return {file_.path(), request_.tag}; }
  std::string What() const;

  rpc::Client& client_;
  const LocalFile& file_;
  const PushRequest& request_;
  std::unique_ptr<rpc::MirrorStream> stream_;
  const Bytes16 session_id_;
  v1::SessionOpened opened_;
  Bytes16 file_id_{};
  std::vector<Extent> pending_;  // of the next frame
  uint64_t pending_bytes_ = 0;
  // The ranges that were sent, where it sends the difference.
  ExtentSet sent_{DirtyMap::kExtentsMax};
  std::optional<uint64_t> truncate_;
  PushResult result_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_PUSH_SESSION_H_
